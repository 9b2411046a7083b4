package doris

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// errorer is what a test and a property have in common.
type errorer interface {
	Helper()
	Errorf(format string, args ...any)
}

// checkComponent holds what is true of every component that is not refused.
func checkComponent(t errorer, c Component, revision int) {
	t.Helper()
	if c.StatefulSet.Spec.Replicas != nil {
		t.Errorf("%s: replicas are set, which would take them from whoever scales", c.Type)
	}
	pod := c.StatefulSet.Spec.Template
	for k, v := range c.StatefulSet.Spec.Selector.MatchLabels {
		if pod.Labels[k] != v {
			t.Errorf("%s: Pods have %s=%q, the selector %q", c.Type, k, pod.Labels[k], v)
		}
	}
	names := map[string]bool{}
	add := func(name string) {
		if names[name] || len(validation.IsDNS1123Label(name)) > 0 {
			t.Errorf("%s: volume name %q is illegal or there twice", c.Type, name)
		}
		names[name] = true
	}
	for _, v := range pod.Spec.Volumes {
		add(v.Name)
	}
	for _, claim := range c.StatefulSet.Spec.VolumeClaimTemplates {
		if revision == 0 && names[claim.Name] {
			continue // the template names the volumes of its claims, too
		}
		add(claim.Name)
	}
	for _, container := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
		checkContainer(t, container, names)
		if text, _ := yaml.Marshal(container.Env); revision > 0 && bytes.Contains(text, []byte("canary")) {
			t.Errorf("%s: the environment holds a password", container.Name)
		}
	}
	for _, s := range c.Services {
		if s.Spec.ClusterIP != "" && s.Spec.ClusterIP != corev1.ClusterIPNone || s.Spec.HealthCheckNodePort != 0 {
			t.Errorf("Service %s sets a field that is not ours", s.Name)
		}
	}
}

func checkContainer(t errorer, c corev1.Container, volumes map[string]bool) {
	t.Helper()
	paths, vars := map[string]bool{}, map[string]bool{}
	for _, m := range c.VolumeMounts {
		if paths[m.MountPath] || !volumes[m.Name] {
			t.Errorf("%s: mount %q at %s is there twice or has no volume", c.Name, m.Name, m.MountPath)
		}
		paths[m.MountPath] = true
	}
	for _, v := range c.Env {
		if vars[v.Name] {
			t.Errorf("%s: variable %s is there twice", c.Name, v.Name)
		}
		vars[v.Name] = true
	}
}

func TestRenderingIsTheSameEveryTime(t *testing.T) {
	t.Parallel()
	dc, in := readCase(t, "testdata/everything/in.yaml")
	var first []byte
	for range 100 {
		objects, findings := Desired(dc, in)
		got := printObjects(t, objects, findings)
		if first == nil {
			first = got
		}
		if !bytes.Equal(first, got) {
			t.Fatal("two renderings differ")
		}
	}
}

func TestRenderingLeavesItsInputAlone(t *testing.T) {
	t.Parallel()
	for revision := range LatestRevision + 1 {
		leavesItsInputAlone(t, revision)
	}
}

func leavesItsInputAlone(t *testing.T, revision int) {
	t.Helper()
	dc, in := readCase(t, "testdata/everything/in.yaml")
	in.Revision = revision
	before, _ := yaml.Marshal(dc)
	objects, _ := Desired(dc, in)
	for _, c := range objects.Components {
		for k := range c.StatefulSet.Spec.Template.Annotations {
			c.StatefulSet.Spec.Template.Annotations[k] = "changed"
		}
		c.StatefulSet.Spec.Template.Spec.Containers[0].Resources.Limits[corev1.ResourceCPU] = resource.MustParse("99")
		for i := range c.StatefulSet.Spec.Template.Spec.Containers[0].Env {
			c.StatefulSet.Spec.Template.Spec.Containers[0].Env[i].Value = "changed"
		}
		for _, s := range c.Services {
			for k := range s.Annotations {
				s.Annotations[k] = "changed"
			}
		}
	}
	if after, _ := yaml.Marshal(dc); !bytes.Equal(before, after) {
		t.Errorf("revision %d: a change of a rendered object changed the spec", revision)
	}
}

func TestFirstFrontendStartsAlone(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		file         string
		bootstrapped bool
		want         int32
		record       bool
	}{
		"new cluster: one":                {"testdata/plain/in.yaml", false, 1, false},
		"cluster that has served: all":    {"testdata/plain/in.yaml", true, 3, true},
		"observers wait for the first":    {"testdata/observers/in.yaml", false, 1, false},
		"one frontend is one from the on": {"testdata/compute-nodes/in.yaml", true, 1, true},
		"taken over: all, in any case":    {"testdata/r0-plain/in.yaml", false, 5, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dc, in := readCase(t, test.file)
			in.Bootstrapped = test.bootstrapped
			objects, _ := Desired(dc, in)
			fe, _ := objects.Component(dorisv1.ComponentFE)
			if fe.Replicas != test.want {
				t.Errorf("%d replicas, want %d", fe.Replicas, test.want)
			}
			if (len(objects.ConfigMaps) > 0) != test.record {
				t.Errorf("bootstrap record rendered: %v, want %v", len(objects.ConfigMaps) > 0, test.record)
			}
		})
	}
	t.Run("the Pod template does not change when the cluster has served", func(t *testing.T) {
		dc, in := readCase(t, "testdata/plain/in.yaml")
		before, _ := Desired(dc, in)
		in.Bootstrapped = true
		after, _ := Desired(dc, in)
		a, _ := yaml.Marshal(before.Components[0].StatefulSet)
		b, _ := yaml.Marshal(after.Components[0].StatefulSet)
		if !bytes.Equal(a, b) {
			t.Error("it changed, which would restart the first frontend")
		}
	})
}

func TestUnknownRevisionIsRefused(t *testing.T) {
	t.Parallel()
	dc, in := readCase(t, "testdata/plain/in.yaml")
	for _, revision := range []int{-1, LatestRevision + 1} {
		in.Revision = revision
		objects, findings := Desired(dc, in)
		if (plan.Plan{Findings: findings}).Refused() == nil || len(objects.Components) > 0 {
			t.Errorf("revision %d was rendered", revision)
		}
	}
}

func TestPasswordStaysInTheSecret(t *testing.T) {
	t.Parallel()
	dc, in := readCase(t, "testdata/account/in.yaml")
	objects, findings := Desired(dc, in)
	if got := string(objects.Secrets[0].Data["password"]); got != "canary-in-adminuser" {
		t.Errorf("the Secret holds %q", got)
	}
	objects.Secrets = nil
	if text := string(printObjects(t, objects, findings)); strings.Contains(text, "canary") {
		t.Error("the password stands in an object or a message")
	}
}

// TestLastOfEach holds that a name that the existing operator emits more than
// once stands once, with the value that counts in the container.
func TestLastOfEach(t *testing.T) {
	t.Parallel()
	vars := func(pairs ...string) []corev1.EnvVar {
		var list []corev1.EnvVar
		for _, p := range pairs {
			name, value, _ := strings.Cut(p, "=")
			list = append(list, corev1.EnvVar{Name: name, Value: value})
		}
		return list
	}
	tests := map[string]struct{ in, want []corev1.EnvVar }{
		"each once: as they are":            {vars("A=1", "B=2"), vars("A=1", "B=2")},
		"twice: first place and last value": {vars("A=1", "B=2", "A=3"), vars("A=3", "B=2")},
		"three times":                       {vars("A=1", "A=2", "B=2", "A=3"), vars("A=3", "B=2")},
		"none":                              {nil, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := lastOfEach(test.in); !reflect.DeepEqual(got, test.want) {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
}

func TestPathNames(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ dirs, want []string }{
		"last segment":                      {[]string{"/data/one", "/data/two"}, []string{"one", "two"}},
		"parent in front where it is taken": {[]string{"/a/data", "/b/data"}, []string{"data", "b-data"}},
		"grandparent where that is taken":   {[]string{"/data", "/x/b/data", "/y/b/data"}, []string{"data", "b-data", "y-b-data"}},
		"underscores become dashes":         {[]string{"/hot_data"}, []string{"hot-data"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := pathNames(test.dirs); !reflect.DeepEqual(got, test.want) {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
}
