package doris

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// TestPropertyNothingOptionalIsNeeded feeds specs in which any subset of the
// optional fields is set.
func TestPropertyNothingOptionalIsNeeded(t *testing.T) {
	t.Parallel()
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
			ConfigMaps: map[string]*corev1.ConfigMap{}, Secrets: map[string]bool{}, DataInCompute: rapid.Bool().Draw(t, "found"),
		}
		for _, name := range References(dc).ConfigMaps {
			if rapid.Bool().Draw(t, "exists") {
				in.ConfigMaps[name] = &corev1.ConfigMap{Data: map[string]string{
					"fe.conf": rapid.SampledFrom(confs).Draw(t, "fe.conf"), "be.conf": rapid.SampledFrom(confs).Draw(t, "be.conf"),
					"apache_hdfs_broker.conf": rapid.SampledFrom([]string{"", "broker_ipc_port = 1", "broker_ipc_port = x"}).Draw(t, "broker.conf"),
				}}
			}
		}
		objects, findings := Desired(dc, in)
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
	if s.Rollout != nil {
		s.Rollout.ProgressDeadlineSeconds = nil
	}
	for i := range s.SharedPersistentVolumeClaims {
		s.SharedPersistentVolumeClaims[i].MountPath = fmt.Sprintf("/shared/%d/", i)
		s.SharedPersistentVolumeClaims[i].PersistentVolumeClaimName = "shared"
	}
	if s.FeSpec == nil {
		s.FeSpec = &dorisv1.FeSpec{}
	}
	s.FeSpec.ElectionNumber = nil
	specs := []*dorisv1.BaseSpec{&s.FeSpec.BaseSpec}
	for _, c := range rendered[1:] {
		if spec := specIn(s, c); spec != nil {
			specs = append(specs, spec)
		}
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
	"grace_shutdown_wait_seconds = 99999999999", "storage_root_path = relative", "be_node_role = computation",
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
// a spec that has them all. What is left is never refused, except what needs
// frontends without any.
func TestPropertyEverySubsetOfOptionalFieldsRenders(t *testing.T) {
	t.Parallel()
	full, in := readCase(t, "testdata/everything/in.yaml")
	full.Spec.CnSpec = &dorisv1.CnSpec{
		BaseSpec: *full.Spec.BeSpec.BaseSpec.DeepCopy(), AutoResolveLimitCPU: true, SkipDefaultSystemInit: true,
		AutoScalingPolicy: &dorisv1.AutoScalingPolicy{Version: dorisv1.AutoScalerV2, MinReplicas: new(int32(1)), MaxReplicas: 4, HPAPolicy: &dorisv1.HPAPolicy{}},
	}
	full.Spec.BrokerSpec = &dorisv1.BrokerSpec{BaseSpec: *full.Spec.FeSpec.BaseSpec.DeepCopy(), KickOffAffinityBe: true}
	rapid.Check(t, func(t *rapid.T) {
		dc, in := full.DeepCopy(), in
		in.Revision, in.DataInCompute = rapid.IntRange(0, LatestRevision).Draw(t, "revision"), rapid.Bool().Draw(t, "found")
		takeAway(t, reflect.ValueOf(&dc.Spec).Elem())
		objects, findings := Desired(dc, in)
		refused := plan.Plan{Findings: findings}.Refused()
		expected := false
		for _, c := range rendered[1:] {
			expected = expected || dc.Spec.FeSpec == nil && dependsOnFrontends(dc, c)
		}
		expected = expected || dc.Spec.CnSpec != nil && !in.DataInCompute && !objects.Compute.Computation
		if (len(refused) > 0) != expected {
			t.Fatalf("refused: %v, expected: %v", refused, expected)
		}
		if len(objects.Missing) > 0 {
			t.Fatalf("missing: %v", objects.Missing)
		}
		for _, c := range objects.Components {
			checkComponent(t, c, in.Revision)
		}
	})
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
