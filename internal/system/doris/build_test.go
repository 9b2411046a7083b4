package doris

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"
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

// TestPropertyNothingOptionalIsNeeded feeds specs in which any subset of the
// optional fields is set.
func TestPropertyNothingOptionalIsNeeded(t *testing.T) {
	refused, rendered := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		dc := &dorisv1.DorisCluster{}
		fill(t, reflect.ValueOf(&dc.Spec).Elem(), 0)
		dc.Name, dc.Namespace = "any", "shop"
		if rapid.IntRange(0, 3).Draw(t, "mended") > 0 {
			mend(&dc.Spec)
		}
		if dc.Spec.AdminUser != nil {
			dc.Spec.AdminUser.Password = "canary"
		}
		in := Inputs{
			Revision: rapid.IntRange(0, LatestRevision).Draw(t, "revision"), Bootstrapped: rapid.Bool().Draw(t, "bootstrapped"),
			ConfigMaps: map[string]*corev1.ConfigMap{}, Secrets: map[string]bool{},
		}
		for _, name := range References(dc).ConfigMaps {
			if rapid.Bool().Draw(t, "exists") {
				in.ConfigMaps[name] = &corev1.ConfigMap{Data: map[string]string{
					"fe.conf": rapid.SampledFrom(confs).Draw(t, "fe.conf"), "be.conf": rapid.SampledFrom(confs).Draw(t, "be.conf"),
				}}
			}
		}
		objects, findings := Desired(dc, in)
		taken := TakenOver(dc, in) // whatever is refused
		for _, f := range findings {
			if f.Field == "" || f.Message == "" || f.Reason == "" {
				t.Fatalf("finding %+v does not say where, what and why", f)
			}
		}
		if (plan.Plan{Findings: findings}).Refused() != nil {
			refused++
			return
		}
		rendered++
		for _, c := range objects.Components {
			checkComponent(t, c, in.Revision)
		}
		for _, c := range taken {
			if len(c.StatefulSet.Spec.Template.Spec.Containers) != 1 || c.StatefulSet.Spec.Replicas != nil {
				t.Fatalf("%s is rendered by halves", c.Type)
			}
		}
	})
	t.Logf("%d refused, %d rendered", refused, rendered)
	if rendered == 0 {
		t.Error("every drawn spec was refused: the property checked nothing")
	}
}

// mend rights what is most often wrong in a drawn spec, so that more than a few
// are rendered.
func mend(s *dorisv1.DorisClusterSpec) {
	s.AuthSecret, s.KerberosInfo = "", nil
	for i := range s.SharedPersistentVolumeClaims {
		s.SharedPersistentVolumeClaims[i].MountPath = fmt.Sprintf("/shared/%d/", i)
		s.SharedPersistentVolumeClaims[i].PersistentVolumeClaimName = "shared"
	}
	if s.FeSpec == nil {
		s.FeSpec = &dorisv1.FeSpec{}
	}
	s.FeSpec.ElectionNumber = nil
	specs := []*dorisv1.BaseSpec{&s.FeSpec.BaseSpec}
	if s.BeSpec != nil {
		specs = append(specs, &s.BeSpec.BaseSpec)
	}
	for _, spec := range specs {
		spec.Image, spec.HostAliases, spec.Tolerations, spec.Secrets = "image:1", nil, nil, nil
		spec.NodeSelector, spec.Annotations, spec.PodLabels, spec.ServiceAccount = nil, nil, nil, ""
		for i := range spec.PersistentVolumes {
			pv := &spec.PersistentVolumes[i]
			pv.Name, pv.PersistentVolumeClaimSpec = fmt.Sprintf("v%d", i), corev1.PersistentVolumeClaimSpec{}
			pv.PersistentVolumeClaimSpec.Resources.Requests = corev1.ResourceList{"storage": resource.MustParse("1Gi")}
		}
		for i := range spec.EnvVars {
			spec.EnvVars[i] = corev1.EnvVar{Name: []string{"USER", "PASSWD", "ENV_FE_ADDR", "FE_QUERY_PORT"}[i%4], Value: "x"}
		}
	}
}

var confs = []string{
	"", "enable_fqdn_mode = true", "query_port = x", "storage_root_path = /a/data;/b/data;/c.d/data.SSD",
	"meta_dir = ${NOWHERE}/x", "meta_dir = ${DORIS_HOME}/m\nenable_tls = true", "arrow_flight_sql_port = 9030",
	"grace_shutdown_wait_seconds = 99999999999", "storage_root_path = relative",
}

// words are values of which most are right in most places, so that not every
// drawn spec is refused.
var words = []string{"", "a", "data", "x.y", "/data", "/etc/doris", "/opt/apache-doris/fe/doris-meta", "admin", "Nope"}

// fill sets any subset of the fields of a value.
func fill(t *rapid.T, v reflect.Value, depth int) {
	if v.Type() == reflect.TypeFor[resource.Quantity]() {
		v.Set(reflect.ValueOf(resource.MustParse(rapid.SampledFrom([]string{"1", "100m", "10Gi"}).Draw(t, "quantity"))))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && (depth < 2 || rapid.IntRange(0, 2).Draw(t, "set") == 0) {
				fill(t, v.Field(i), depth+1)
			}
		}
	case reflect.Pointer:
		if depth < 6 && rapid.IntRange(0, 2).Draw(t, "present") > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem(), depth)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 || depth > 5 {
			return
		}
		n := rapid.IntRange(0, 2).Draw(t, "length")
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(t, v.Index(i), depth+1)
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, key, depth+1)
		fill(t, value, depth+1)
		if v.Type().Key() == reflect.TypeFor[corev1.ResourceName]() {
			key.SetString(rapid.SampledFrom([]string{"cpu", "memory", "storage"}).Draw(t, "resource"))
		}
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString(rapid.SampledFrom(words).Draw(t, "word"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(rapid.SampledFrom([]int64{0, 1, 3, 5, 9030, 30001, -1}).Draw(t, "number"))
	}
}

// TestPropertyEverySubsetOfOptionalFieldsRenders takes optional fields away from
// a spec that has them all. What is left is never refused, except backends
// without frontends.
func TestPropertyEverySubsetOfOptionalFieldsRenders(t *testing.T) {
	full, in := readCase(t, "testdata/everything/in.yaml")
	full.Spec.CnSpec = &dorisv1.CnSpec{BaseSpec: *full.Spec.BeSpec.BaseSpec.DeepCopy(), AutoResolveLimitCPU: true, SkipDefaultSystemInit: true}
	full.Spec.BrokerSpec = &dorisv1.BrokerSpec{BaseSpec: *full.Spec.FeSpec.BaseSpec.DeepCopy(), KickOffAffinityBe: true}
	rapid.Check(t, func(t *rapid.T) {
		dc, in := full.DeepCopy(), in
		in.Revision = rapid.IntRange(0, LatestRevision).Draw(t, "revision")
		takeAway(t, reflect.ValueOf(&dc.Spec).Elem())
		objects, findings := Desired(dc, in)
		refused := plan.Plan{Findings: findings}.Refused()
		if expected := dc.Spec.FeSpec == nil && dc.Spec.BeSpec != nil; (len(refused) > 0) != expected {
			t.Fatalf("refused: %v, expected: %v", refused, expected)
		}
		if len(objects.Missing) > 0 {
			t.Fatalf("missing: %v", objects.Missing)
		}
		for _, c := range append(objects.Components, TakenOver(dc, in)...) {
			checkComponent(t, c, min(in.Revision, revisionOf(c)))
		}
	})
}

// revisionOf returns the newest revision that a component is rendered at.
func revisionOf(c Component) int {
	if c.Type == dorisv1.ComponentCN || c.Type == dorisv1.ComponentBroker {
		return 0
	}
	return LatestRevision
}

// takeAway clears any subset of the optional fields of a spec and of the specs
// of its components.
func takeAway(t *rapid.T, v reflect.Value) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		switch {
		case field.Name == "Image":
		case field.Anonymous && field.Type.Kind() == reflect.Struct:
			takeAway(t, v.Field(i))
		case rapid.IntRange(0, 3).Draw(t, field.Name) == 0:
			v.Field(i).SetZero()
		case strings.HasSuffix(field.Name, "Spec") && field.Type.Kind() == reflect.Pointer:
			if !v.Field(i).IsNil() {
				takeAway(t, v.Field(i).Elem())
			}
		}
	}
}

func TestRenderingIsTheSameEveryTime(t *testing.T) {
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
	for _, c := range append(objects.Components, TakenOver(dc, in)...) {
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
