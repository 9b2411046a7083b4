package live

import (
	"fmt"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/test/cluster/clustertest"
)

func port(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, p, _ := net.SplitHostPort(l.Addr().String())
	return p
}

func (h *helm) definition() *apiextensionsv1.CustomResourceDefinition {
	h.Helper()
	var crd apiextensionsv1.CustomResourceDefinition
	err := h.client.Get(h.Context(), client.ObjectKey{Name: crdName}, &crd)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		h.Fatal(err)
	}
	return &crd
}

// Two releases in one namespace work in a namespace each, under their own rights
// and leases, at once.
func TestTwoReleasesSideBySide(t *testing.T) {
	h := newHelm(t)
	blue, green := clustertest.Namespace(t), clustertest.Namespace(t)
	values := func(ns string) string {
		return fmt.Sprintf("watchNamespaces: [%s]\nmetrics: {port: %s}\noperatorHealth: {port: %s}\n", ns, port(t), port(t))
	}
	h.install("blue", values(blue))
	h.install("green", values(green)+"crds: {install: false}\n")
	h.served()
	h.rolled("blue", "blue-fairlead")
	h.rolled("green", "green-fairlead")
	mark, err := clustertest.Shared(t).Audit().Mark()
	if err != nil {
		t.Fatal(err)
	}
	h.operate("blue-fairlead").says("Starting workers")
	h.operate("green-fairlead").says("Starting workers")
	for _, ns := range []string{blue, green} {
		there := &helm{T: t, client: h.client, namespace: ns}
		there.clusters("one")
	}
	for _, name := range []string{"blue-fairlead", "green-fairlead"} {
		var lease coordinationv1.Lease
		if err := h.client.Get(t.Context(), client.ObjectKey{Namespace: h.namespace, Name: name}, &lease); err != nil {
			t.Errorf("lease: %v", err)
		}
	}
	entries, err := clustertest.Shared(t).Audit().Since(mark)
	if err != nil {
		t.Fatal(err)
	}
	asked := map[string]int{}
	for _, e := range entries {
		account, ours := strings.CutPrefix(e.User, "system:serviceaccount:"+h.namespace+":")
		if !ours {
			continue
		}
		asked[account]++
		if e.Code == 403 {
			t.Errorf("%s may not %s %s in %q", account, e.Verb, e.Key().Resource, e.Namespace)
		}
		if foreign := map[string]string{"blue-fairlead": green, "green-fairlead": blue}[account]; e.Namespace == foreign {
			t.Errorf("%s asks for %s in %s", account, e.Key().Resource, e.Namespace)
		}
	}
	if asked["blue-fairlead"] == 0 || asked["green-fairlead"] == 0 {
		t.Errorf("the operators asked %v", asked)
	}
}

// A second release on the same namespace is refused before anything is written,
// in every combination; so it is where it may not look.
func TestSecondReleaseOnTheSameIsRefused(t *testing.T) {
	h := newHelm(t)
	mine, other := clustertest.Namespace(t), clustertest.Namespace(t)
	h.install("blue", "watchNamespaces: ["+mine+"]")
	release := fmt.Sprintf("release %q in namespace %q", "blue", h.namespace)

	_, err := h.tryInstall("green", "watchNamespaces: ["+other+", "+mine+"]\ncrds: {install: false}")
	wantError(t, err, release, fmt.Sprintf("works in namespace %q already", mine))
	_, err = h.tryInstall("all", "crds: {install: false}")
	wantError(t, err, release, fmt.Sprintf("works in namespace %q already", mine))
	_, err = h.tryInstall("blind", "watchNamespaces: ["+mine+"]\ncrds: {install: false}\ncheckOtherReleases: false")
	wantError(t, err, "invalid ownership metadata", "fairlead-operator")

	var all appsv1.DeploymentList
	if err := h.client.List(t.Context(), &all, client.InNamespace(h.namespace)); err != nil || len(all.Items) != 1 {
		t.Errorf("there are %d Deployments, %v", len(all.Items), err)
	}
	h.upgrade("blue", "watchNamespaces: ["+mine+", "+other+"]") // its own is no other
}

// A release that works everywhere leaves no room for another.
func TestSecondReleaseBesideOneThatWorksEverywhereIsRefused(t *testing.T) {
	h := newHelm(t)
	mine := clustertest.Namespace(t)
	h.install("blue", "{}")
	_, err := h.tryInstall("green", "watchNamespaces: ["+mine+"]\ncrds: {install: false}")
	wantError(t, err, "works in all namespaces already")
	_, err = h.tryInstall("all", "crds: {install: false}")
	wantError(t, err, "works in all namespaces already")
	_, err = h.tryInstall("blind", "crds: {install: false}\ncheckOtherReleases: false")
	wantError(t, err, "invalid ownership metadata", "fairlead-operator")
}

// adoption are the commands of the documentation, in order, with what they say
// in capitals filled in.
func adoption(t *testing.T, release, namespace string) [][]string {
	t.Helper()
	text, err := os.ReadFile(root + "/docs/helm.md")
	if err != nil {
		t.Fatal(err)
	}
	var out [][]string
	for _, line := range regexp.MustCompile(`(?m)^kubectl (annotate|label) crd .*$`).FindAllString(string(text), -1) {
		line = strings.NewReplacer("RELEASE", release, "NAMESPACE", namespace).Replace(line)
		out = append(out, strings.Fields(line)[1:])
	}
	if len(out) < 2 {
		t.Fatalf("docs/helm.md has %d commands of adoption", len(out))
	}
	return out
}

// A definition that kubectl installed: Helm refuses it, says why, and takes it
// after the commands of the documentation. Resources stay.
func TestDefinitionOfKubectlIsAdopted(t *testing.T) {
	for name, manner := range map[string][]string{
		"server-side apply": {"apply", "--server-side", "-f"},
		"client-side apply": {"apply", "-f"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHelm(t)
			t.Cleanup(func() { dropDefinition(t, h.client) })
			kubectl(t, append(manner, root+"/config/crd/"+"doris.selectdb.com_dorisclusters.yaml")...)
			h.served()
			uid := h.definition().UID
			_, err := h.tryInstall("fairlead", "{}")
			wantError(t, err, "invalid ownership metadata", crdName)
			for _, args := range adoption(t, "fairlead", h.namespace) {
				kubectl(t, args...)
			}
			h.install("fairlead", "{}", func(i *action.Install) { i.ForceConflicts = true })
			h.owned("fairlead", string(uid))
		})
	}
}

// The same by Helm's own switch.
func TestDefinitionIsTakenBySwitch(t *testing.T) {
	h := newHelm(t)
	kubectl(t, "create", "-f", root+"/config/crd/"+"doris.selectdb.com_dorisclusters.yaml")
	h.served()
	uid := h.definition().UID
	h.install("fairlead", "{}", func(i *action.Install) { i.TakeOwnership, i.ForceConflicts = true, true })
	h.owned("fairlead", string(uid))
}

// A definition of the existing operator's chart is an older one: it becomes ours,
// in place.
func TestOlderDefinitionIsUpgradedInPlace(t *testing.T) {
	h := newHelm(t)
	var old apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal([]byte(shared(t, "config/crd/doris.selectdb.com_dorisclusters.yaml")), &old); err != nil {
		t.Fatal(err)
	}
	version := &old.Spec.Versions[0]
	version.AdditionalPrinterColumns = nil
	spec := version.Schema.OpenAPIV3Schema.Properties["spec"]
	delete(spec.Properties, "configUpdatePolicy")
	spec.XValidations = nil
	version.Schema.OpenAPIV3Schema.Properties["spec"] = spec
	old.Annotations = nil
	if err := h.client.Create(t.Context(), &old); err != nil {
		t.Fatal(err)
	}
	h.served()
	for _, args := range adoption(t, "fairlead", h.namespace) {
		kubectl(t, args...)
	}
	h.install("fairlead", "{}", func(i *action.Install) { i.ForceConflicts = true })
	h.owned("fairlead", string(old.UID))
	if _, ok := h.definition().Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["configUpdatePolicy"]; !ok {
		t.Error("the definition is the old one")
	}
}

// owned holds that the definition is the release's, and the same object as before.
func (h *helm) owned(release, uid string) {
	h.Helper()
	crd := h.definition()
	if crd == nil {
		h.Fatal("there is no definition")
	}
	if string(crd.UID) != uid {
		h.Errorf("the definition was made anew: resources would be gone")
	}
	if a := crd.Annotations; a["meta.helm.sh/release-name"] != release || a["meta.helm.sh/release-namespace"] != h.namespace || a["helm.sh/resource-policy"] != "keep" {
		h.Errorf("annotations are %v", a)
	}
}

// An installer without rights in the cluster as a whole: the operator works, and
// each resource says what it cannot see.
func TestNamespacedInstallationSaysWhatItCannotSee(t *testing.T) {
	h := newHelm(t)
	h.install("fairlead", fmt.Sprintf("watchNamespaces: [%s]\nrbac: {clusterScoped: false}\nmetrics: {port: %s}\noperatorHealth: {port: %s}\n", h.namespace, port(t), port(t)))
	h.served()
	h.rolled("fairlead", "fairlead")
	h.operate("fairlead").says("cannot see whether another operator is at work")
	h.clusters("one")
	eventually(t, "the resource says what the operator cannot see", func() string {
		var dc dorisv1.DorisCluster
		if err := h.client.Get(t.Context(), client.ObjectKey{Namespace: h.namespace, Name: "one"}, &dc); err != nil {
			t.Fatal(err)
		}
		for _, c := range dc.Status.Conditions {
			if c.Type == meta.ConditionOtherOperatorsVisible && c.Status == "False" && c.Reason == meta.ReasonMayNotLook {
				return ""
			}
		}
		return fmt.Sprint(dc.Status.Conditions)
	})
}
