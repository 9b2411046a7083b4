package story

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
)

// The operator's own account in the install manifest.
const (
	SystemNamespace = "fairlead-system"
	AccountName     = "fairlead"
)

// Scheme has the kinds that stories deal with.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, dorisv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}

// Wrote is what the operator owns of an object, since when, and in which generation:
// another text tells that it wrote anew. It is empty for an object that is not its own.
func Wrote(o client.Object) string {
	var wrote []string
	for _, m := range o.GetManagedFields() {
		if strings.HasPrefix(m.Manager, "fairlead") {
			wrote = append(wrote, m.Time.String(), m.FieldsV1.String())
		}
	}
	if len(wrote) == 0 {
		return ""
	}
	return strings.Join(append(wrote, fmt.Sprint(o.GetGeneration())), " ")
}

// Install applies the objects of the install manifest that are picked by kind.
func Install(ctx context.Context, c client.Client, manifest string, pick func(kind string) bool) error {
	text, err := os.ReadFile(manifest)
	if err != nil {
		return err
	}
	for _, u := range Documents(string(text)) {
		if !pick(u.GetKind()) {
			continue
		}
		if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(&u), client.FieldOwner("install"), client.ForceOwnership); err != nil {
			return fmt.Errorf("%s %s: %w", u.GetKind(), u.GetName(), err)
		}
	}
	return nil
}

// AwaitKind waits until DorisClusters are served.
func AwaitKind(ctx context.Context, c client.Client, patience time.Duration) error {
	deadline := time.Now().Add(patience)
	for {
		err := c.List(ctx, &dorisv1.DorisClusterList{}, client.InNamespace("default"))
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(50 * time.Millisecond) // until the definition is served
	}
}

// Documents are the objects of a manifest of the test itself.
func Documents(text string) []unstructured.Unstructured {
	var list []unstructured.Unstructured
	for doc := range strings.SplitSeq("\n"+text, "\n---") {
		var u unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(doc), &u.Object); err != nil {
			panic(err)
		}
		if u.GetKind() != "" {
			list = append(list, u)
		}
	}
	return list
}

// Token is one of the operator's own account.
func Token(ctx context.Context, admin *rest.Config) (string, error) {
	c, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return "", err
	}
	token, err := c.CoreV1().ServiceAccounts(SystemNamespace).CreateToken(ctx, AccountName, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("token of the operator: %w", err)
	}
	return token.Status.Token, nil
}

// WriteKubeconfig writes a kubeconfig for the server of a configuration, with
// the token and none of the rights of that configuration.
func WriteKubeconfig(file string, server *rest.Config, token string) error {
	server = rest.CopyConfig(server)
	if err := rest.LoadTLSFiles(server); err != nil {
		return err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: server.Host, CertificateAuthorityData: server.CAData}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	return clientcmd.WriteToFile(*config, file)
}
