// Package live installs the chart where Kubernetes is real: API server,
// controllers and Helm are, nodes are simulated (a test double of the kubelet).
// The operator runs beside the cluster, as a process with the arguments, the
// configuration and the rights that the chart gives it.
//
// Definitions and cluster roles are shared by all, so tests run one by one and
// each leaves the cluster as it found it.
package live

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/kube"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/go-logr/logr"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/test/cluster"
	"github.com/fairlead-dev/fairlead/test/cluster/clustertest"
)

const (
	root     = "../../.."
	chartDir = root + "/charts/fairlead"
	crdName  = "dorisclusters.doris.selectdb.com"
	// patience is how long a test waits for what should take a second or two.
	patience = time.Minute
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})))
	clustertest.Main(m, cluster.Options{Nodes: cluster.Simulated, Simulate: []string{"--start", "100ms"}})
}

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	utilruntime.Must(apiextensionsv1.AddToScheme(s))
	utilruntime.Must(dorisv1.AddToScheme(s))
	return s
}

// clientOf is a client that may do all.
func clientOf(t *testing.T) client.Client {
	t.Helper()
	c, err := client.New(clustertest.Shared(t).RESTConfig(), client.Options{Scheme: scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// helm is what a person at the command line has: releases in one namespace.
type helm struct {
	*testing.T
	client    client.Client
	namespace string
	config    *action.Configuration
}

// newHelm makes a namespace, which goes with the test, and all that was
// installed from it before.
func newHelm(t *testing.T) *helm {
	t.Helper()
	h := &helm{T: t, client: clientOf(t), namespace: clustertest.Namespace(t)}
	flags := genericclioptions.NewConfigFlags(false)
	path := clustertest.Shared(t).Kubeconfig()
	flags.KubeConfig, flags.Namespace = &path, &h.namespace
	h.config = action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler))
	if err := h.config.Init(flags, h.namespace, "secrets"); err != nil {
		t.Fatal(err)
	}
	return h
}

// in is the same at work in a part of the test.
func (h *helm) in(t *testing.T) *helm {
	t.Helper()
	part := *h
	part.T = t
	return &part
}

func parse(t testing.TB, values string) map[string]any {
	t.Helper()
	out := map[string]any{}
	if err := yaml.Unmarshal([]byte(values), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// tryInstall installs a release and returns what Helm says; the release goes
// with the test.
func (h *helm) tryInstall(name, values string, change ...func(*action.Install)) (*releasev1.Release, error) {
	h.Helper()
	chart, err := loader.Load(chartDir)
	if err != nil {
		h.Fatal(err)
	}
	i := action.NewInstall(h.config)
	i.ReleaseName, i.Namespace, i.WaitStrategy, i.ServerSideApply = name, h.namespace, kube.HookOnlyStrategy, true
	i.DisableOpenAPIValidation = true // the API server does it anyway
	for _, c := range change {
		c(i)
	}
	h.Cleanup(func() { h.clean(name) })
	r, err := i.RunWithContext(h.Context(), chart, parse(h, values))
	if err != nil {
		return nil, err
	}
	return r.(*releasev1.Release), nil
}

// install installs a release that must succeed.
func (h *helm) install(name, values string, change ...func(*action.Install)) *releasev1.Release {
	h.Helper()
	r, err := h.tryInstall(name, values, change...)
	if err != nil {
		h.Fatal(err)
	}
	return r
}

// tryUpgrade upgrades a release and returns what Helm says.
func (h *helm) tryUpgrade(name, values string, change ...func(*action.Upgrade)) (*releasev1.Release, error) {
	h.Helper()
	chart, err := loader.Load(chartDir)
	if err != nil {
		h.Fatal(err)
	}
	u := action.NewUpgrade(h.config)
	u.Namespace, u.WaitStrategy, u.ServerSideApply = h.namespace, kube.HookOnlyStrategy, "auto"
	u.DisableOpenAPIValidation = true
	for _, c := range change {
		c(u)
	}
	r, err := u.RunWithContext(h.Context(), name, chart, parse(h, values))
	if err != nil {
		return nil, err
	}
	return r.(*releasev1.Release), nil
}

// upgrade upgrades a release, which must succeed.
func (h *helm) upgrade(name, values string) *releasev1.Release {
	h.Helper()
	r, err := h.tryUpgrade(name, values)
	if err != nil {
		h.Fatal(err)
	}
	return r
}

func (h *helm) uninstall(name string) {
	h.Helper()
	u := action.NewUninstall(h.config)
	u.WaitStrategy, u.Timeout = kube.HookOnlyStrategy, patience
	if _, err := u.Run(name); err != nil {
		h.Fatal(err)
	}
}

// clean leaves nothing of a release, the definition included: the next test
// finds an empty cluster.
func (h *helm) clean(name string) {
	u := action.NewUninstall(h.config)
	u.WaitStrategy, u.IgnoreNotFound, u.Timeout = kube.HookOnlyStrategy, true, patience
	if _, err := u.Run(name); err != nil {
		h.Errorf("uninstalling %s: %v", name, err)
	}
	dropDefinition(h.T, h.client)
}

// dropDefinition deletes the definition and every resource of it, whose
// finalizers nobody would take away any more.
func dropDefinition(t *testing.T, c client.Client) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // that of the test may have ended
	var all dorisv1.DorisClusterList
	if err := c.List(ctx, &all); err == nil {
		for _, dc := range all.Items {
			dc.Finalizers = nil
			_ = c.Update(ctx, &dc)
		}
	}
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: crdName}}
	if err := client.IgnoreNotFound(c.Delete(ctx, crd)); err != nil {
		t.Error(err)
	}
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		if err := c.Get(ctx, client.ObjectKeyFromObject(crd), crd); apierrors.IsNotFound(err) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Error("the definition does not go")
}

// eventually waits until what returns nothing: otherwise it is what is missing.
func eventually(t *testing.T, what string, missing func() string) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		left := missing()
		if left == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %s", what, left)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// pods are the uids of the operator's Pods that are not about to go, sorted.
func (h *helm) pods(release string) []string {
	h.Helper()
	var list corev1.PodList
	err := h.client.List(h.Context(), &list, client.InNamespace(h.namespace), client.MatchingLabels{"app.kubernetes.io/instance": release})
	if err != nil {
		h.Fatal(err)
	}
	var uids []string
	for _, p := range list.Items {
		if p.DeletionTimestamp == nil {
			uids = append(uids, string(p.UID))
		}
	}
	slices.Sort(uids)
	return uids
}

// rolled waits until the Deployment has what its spec says, and returns its Pods.
func (h *helm) rolled(release, deployment string) []string {
	h.Helper()
	eventually(h.T, "the Deployment is rolled out", func() string {
		d := h.deployment(deployment)
		want := *d.Spec.Replicas
		if s := d.Status; s.ObservedGeneration != d.Generation || s.UpdatedReplicas != want || s.Replicas != want || s.AvailableReplicas != want {
			return fmt.Sprintf("%+v", s)
		}
		if n := len(h.pods(release)); n != int(want) {
			return fmt.Sprintf("%d Pods", n)
		}
		return ""
	})
	return h.pods(release)
}

// shared reads a file of the repository.
func shared(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// wantError holds that the error has all of the texts.
func wantError(t *testing.T, err error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Fatal(errors.New("it succeeded"))
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("error lacks %q:\n%v", text, err)
		}
	}
}
