// Package manifests holds what a real API server has to say about the manifests
// that users write and about the objects that are made of them.
package manifests

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/system/doris"
	"github.com/fairlead-dev/fairlead/test/cluster"
	"github.com/fairlead-dev/fairlead/test/cluster/clustertest"
	"github.com/fairlead-dev/fairlead/test/story"
)

func TestMain(m *testing.M) { clustertest.Main(m, cluster.Options{Nodes: cluster.None}) }

const (
	root  = "../../../"
	cases = root + "internal/system/doris/testdata/*/in.yaml"
	// The manifests and the states that the existing operator left, where at hand.
	known = root + "../shared/compat/doris/examples/doriscluster-sample*.yaml"
	left  = root + "../shared/compat/doris/live/doriscluster-sample*.yaml"
)

// scene is a client of a cluster that knows DorisClusters, and a namespace.
type scene struct {
	*testing.T
	client    client.Client
	namespace string
}

func newScene(t *testing.T) scene {
	t.Helper()
	scheme, err := story.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(clustertest.Shared(t).RESTConfig(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	s := scene{t, c, clustertest.Namespace(t)}
	s.installCRD()
	return s
}

func (s scene) installCRD() {
	s.Helper()
	crd := &unstructured.Unstructured{}
	s.read(root+"config/crd/doris.selectdb.com_dorisclusters.yaml", crd)
	if err := s.client.Apply(s.Context(), client.ApplyConfigurationFromUnstructured(crd), client.FieldOwner("test"), client.ForceOwnership); err != nil {
		s.Fatal(err)
	}
	err := wait.PollUntilContextTimeout(s.Context(), 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		err := s.client.List(ctx, &dorisv1.DorisClusterList{}, client.InNamespace(s.namespace))
		return err == nil, nil
	})
	if err != nil {
		s.Fatalf("the API server does not serve DorisClusters: %v", err)
	}
}

func (s scene) read(file string, into any) {
	s.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		s.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		s.Fatalf("%s: %v", file, err)
	}
}

// documents reads the objects of a file into the namespace of the scene.
func (s scene) documents(file string) []unstructured.Unstructured {
	s.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		s.Fatal(err)
	}
	var list []unstructured.Unstructured
	for doc := range strings.SplitSeq(string(text), "\n---\n") {
		var u unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(doc), &u.Object); err != nil {
			s.Fatalf("%s: %v", file, err)
		}
		if u.GetKind() != "" {
			u.SetNamespace(s.namespace)
			u.SetUID("")
			list = append(list, u)
		}
	}
	return list
}

func files(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Skip("the manifests are not here")
	}
	return found
}

// TestManifestsAreStoredAsWritten holds that the schema knows every field that
// users write: none is refused and none is dropped.
func TestManifestsAreStoredAsWritten(t *testing.T) {
	s := newScene(t)
	for _, pattern := range []string{cases, known} {
		for _, file := range files(t, pattern) {
			t.Run(filepath.Base(filepath.Dir(file))+"/"+filepath.Base(file), func(t *testing.T) {
				sent := s.documents(file)[0]
				got := sent.DeepCopy()
				err := s.client.Create(t.Context(), got, client.FieldValidation(metav1.FieldValidationStrict), client.DryRunAll)
				if filepath.Base(filepath.Dir(file)) == "refused" {
					if !apierrors.IsInvalid(err) {
						t.Errorf("what the operator refuses is taken: %v", err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				// Strict validation names unknown fields; what is left is what the
				// schema adds (defaults) or changes.
				if diff := cmp.Diff(plain(t, sent.Object["spec"]), plain(t, got.Object["spec"])); diff != "" {
					t.Errorf("the API server changed the spec (-sent +stored):\n%s", diff)
				}
			})
		}
	}
}

func plain(t *testing.T, value any) any {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestOldHabitsAreAccepted holds that the schema refuses nothing that the
// existing operator's took and that led to anything. What led to nothing is refused
// when it is new, and stays writable where it is there: see test/admission.
func TestOldHabitsAreAccepted(t *testing.T) {
	s := newScene(t)
	tests := map[string]string{
		"spec with nothing in it":            `{}`,
		"a variable twice":                   `{feSpec: {image: a, envVars: [{name: A, value: "1"}, {name: A, value: "2"}]}}`,
		"a pull secret twice":                `{feSpec: {image: a, imagePullSecrets: [{name: a}, {name: a}]}}`,
		"more electors than frontends":       `{feSpec: {image: a, replicas: 1, electionNumber: 3}}`,
		"no replicas":                        `{feSpec: {image: a, replicas: 0}}`,
		"endpoints as older versions had it": `{beSpec: {image: a, feAddress: {endpoints: {":address": [b], port: 9030}}}}`,
		"a node port outside the range":      `{feSpec: {image: a, service: {type: NodePort, servicePorts: [{nodePort: 1, targetPort: 1}]}}}`,
		"a type of Service that is none":     `{feSpec: {image: a, service: {type: Nothing}}}`,
		"an unknown component":               `{sharedPersistentVolumeClaims: [{mountPath: a, persistentVolumeClaimName: b, supportComponents: [x]}]}`,
	}
	for name, spec := range tests {
		t.Run(name, func(t *testing.T) {
			u := unstructured.Unstructured{Object: map[string]any{}}
			u.SetGroupVersionKind(dorisv1.GroupVersionKind())
			u.SetName("old")
			u.SetNamespace(s.namespace)
			var body map[string]any
			if err := yaml.Unmarshal([]byte(spec), &body); err != nil {
				t.Fatal(err)
			}
			u.Object["spec"] = body
			if err := s.client.Create(t.Context(), &u, client.FieldValidation(metav1.FieldValidationStrict), client.DryRunAll); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("but negative replicas, which it refused as well", func(t *testing.T) {
		dc := &dorisv1.DorisCluster{ObjectMeta: metav1.ObjectMeta{Name: "old", Namespace: s.namespace}}
		replicas := int32(-1)
		dc.Spec.FeSpec = &dorisv1.FeSpec{BaseSpec: dorisv1.BaseSpec{Image: "a", Replicas: &replicas}}
		if err := s.client.Create(t.Context(), dc, client.DryRunAll); !apierrors.IsInvalid(err) {
			t.Errorf("error = %v, want invalid", err)
		}
	})
}

// TestOldStatusIsAccepted writes a status that the existing operator left.
func TestOldStatusIsAccepted(t *testing.T) {
	s := newScene(t)
	for _, file := range files(t, left) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			var old struct{ Status map[string]any }
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			head, _, _ := strings.Cut(string(text), "\n---\n")
			if err := yaml.Unmarshal([]byte(head), &old); err != nil {
				t.Fatal(err)
			}
			dc := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
			dc.SetGroupVersionKind(dorisv1.GroupVersionKind())
			dc.SetName(strings.TrimSuffix(filepath.Base(file), ".yaml"))
			dc.SetNamespace(s.namespace)
			if err := s.client.Create(t.Context(), dc); err != nil {
				t.Fatal(err)
			}
			dc.Object["status"] = old.Status
			if err := s.client.Status().Update(t.Context(), dc, &client.SubResourceUpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(plain(t, old.Status), plain(t, dc.Object["status"])); diff != "" {
				t.Errorf("the API server changed the status (-sent +stored):\n%s", diff)
			}
		})
	}
}

// TestRenderedObjectsAreAccepted applies what is rendered, as a dry run.
func TestRenderedObjectsAreAccepted(t *testing.T) {
	s := newScene(t)
	for _, file := range files(t, cases) {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			dc, in := s.inputs(file)
			objects, findings := doris.Desired(dc, in)
			if (plan.Plan{Findings: findings}).Refused() != nil {
				t.Skip("refused before anything is applied")
			}
			for _, o := range all(objects) {
				u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
				if err != nil {
					t.Fatal(err)
				}
				apply := &unstructured.Unstructured{Object: u}
				unstructured.RemoveNestedField(u, "status")
				err = s.client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(apply), client.FieldOwner("test"), client.DryRunAll, client.ForceOwnership)
				if err != nil {
					t.Errorf("%T %s: %v", o, o.GetName(), err)
				}
			}
		})
	}
}

func (s scene) inputs(file string) (*dorisv1.DorisCluster, doris.Inputs) {
	s.Helper()
	dc := &dorisv1.DorisCluster{}
	in := doris.Inputs{
		Revision: doris.LatestRevision, Bootstrapped: true,
		ConfigMaps: map[string]*corev1.ConfigMap{}, Secrets: map[string]bool{},
	}
	for _, u := range s.documents(file) {
		switch u.GetKind() {
		case dorisv1.Kind:
			s.convert(u, dc)
		case "ConfigMap":
			cm := &corev1.ConfigMap{}
			s.convert(u, cm)
			in.ConfigMaps[cm.Name] = cm
		case "Secret":
			in.Secrets[u.GetName()] = true
		}
	}
	dc.UID = "9d3f0c3e-0000-4000-8000-000000000000"
	return dc, in
}

func (s scene) convert(u unstructured.Unstructured, into any) {
	s.Helper()
	text, err := json.Marshal(u.Object)
	if err != nil {
		s.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		s.Fatal(err)
	}
}

// all lists the objects that are applied.
func all(objects doris.Objects) []client.Object {
	var list []client.Object
	for _, c := range objects.Components {
		list = append(list, c.StatefulSet)
		for _, service := range c.Services {
			list = append(list, service)
		}
	}
	for _, o := range objects.Secrets {
		list = append(list, o)
	}
	for _, o := range objects.ConfigMaps {
		list = append(list, o)
	}
	return list
}
