package live

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/test/story"
)

// Everything that any of the files of values makes is taken by the API server,
// with no field that it does not know, and the Pods are within the standard
// "restricted" unless the values say otherwise.
func TestTheAPIServerTakesEveryManifest(t *testing.T) {
	h := newHelm(t)
	for _, name := range []string{"sales", "research"} {
		h.makeNamespace(name)
	}
	h.label("pod-security.kubernetes.io/enforce", "restricted")
	files, err := filepath.Glob("../testdata/values/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			values, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			h := h.in(t)
			r := h.install("fairlead", string(values), func(i *action.Install) {
				i.DryRunStrategy, i.KubeVersion = action.DryRunClient, &common.KubeVersion{Version: "v1.29.0", Major: "1", Minor: "29"}
			})
			objects := story.Documents(r.Manifest)
			if len(objects) < 1 {
				t.Fatal("nothing is rendered")
			}
			for _, o := range objects {
				if o.GroupVersionKind().Group == "monitoring.coreos.com" { // its definitions are not of this cluster
					continue
				}
				err := h.client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(&o), client.FieldOwner("dry-run"), client.ForceOwnership, client.DryRunAll)
				if err != nil {
					t.Errorf("%s %s/%s: %v", o.GetKind(), o.GetNamespace(), o.GetName(), err)
				}
				if o.GetKind() == "Deployment" && name != "everything" { // which brings containers of its own
					h.podIsRestricted(t, o.Object)
				}
			}
		})
	}
}

func (h *helm) makeNamespace(name string) {
	h.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := h.client.Create(h.Context(), ns); err != nil && !apierrors.IsAlreadyExists(err) {
		h.Fatal(err)
	}
}

// label labels the namespace of the releases.
func (h *helm) label(key, value string) {
	h.Helper()
	var ns corev1.Namespace
	if err := h.client.Get(h.Context(), client.ObjectKey{Name: h.namespace}, &ns); err != nil {
		h.Fatal(err)
	}
	ns.Labels[key] = value
	if err := h.client.Update(h.Context(), &ns); err != nil {
		h.Fatal(err)
	}
}

// podIsRestricted makes, but for show, the Pod that a Deployment would make.
func (h *helm) podIsRestricted(t *testing.T, deployment map[string]any) {
	t.Helper()
	var d appsv1.Deployment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(deployment, &d); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "for-show"}, Spec: d.Spec.Template.Spec}
	pod.Spec.ServiceAccountName = "default" // its own is not there yet
	err := h.client.Create(t.Context(), pod, client.DryRunAll)
	if err != nil && !strings.Contains(err.Error(), "no PriorityClass") {
		t.Errorf("the Pod: %v", err)
	}
}

// What the user chart of the existing operator renders is taken as it is: each
// file has a resource as that chart makes it of the values in its comment.
func TestResourcesOfTheDorisChartAreTaken(t *testing.T) {
	h := newHelm(t)
	h.install("fairlead", "{}")
	h.served()
	files, err := filepath.Glob("testdata/doris-chart/*.yaml")
	if err != nil || len(files) < 4 {
		t.Fatal(files, err)
	}
	slices.Sort(files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			h := h.in(t)
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			kinds := map[string]int{}
			for _, o := range story.Documents(string(text)) {
				o.SetNamespace(h.namespace)
				kinds[o.GetKind()]++
				err := h.strictly(t, &o)
				if err != nil {
					t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
				}
			}
			if kinds["DorisCluster"] != 1 {
				t.Errorf("the file has %v", kinds)
			}
		})
	}
}

// strictly creates an object but for show; a field that is not known is an error.
func (h *helm) strictly(t *testing.T, o client.Object) error {
	t.Helper()
	return client.WithFieldValidation(h.client, metav1.FieldValidationStrict).Create(t.Context(), o, client.DryRunAll)
}

// served waits until DorisClusters are.
func (h *helm) served() {
	h.Helper()
	if err := story.AwaitKind(h.Context(), h.client, patience); err != nil {
		h.Fatal(fmt.Errorf("the definition is not served: %w", err))
	}
}
