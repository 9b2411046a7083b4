// Package admission proves on a real API server what it checks itself of a
// DorisCluster: each rule refuses what is new and wrong, with the field and the
// way out, and none makes a resource unwritable that was there before the rule.
//
// With FAIRLEAD_CLUSTER_DIR it runs on a cluster of any version that is up.
package admission

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/system/doris/admission"
	"github.com/fairlead-dev/fairlead/test/cluster"
	"github.com/fairlead-dev/fairlead/test/cluster/clustertest"
)

func TestMain(m *testing.M) { clustertest.Main(m, cluster.Options{Nodes: cluster.None}) }

// mistake breaks one rule.
type mistake struct {
	rule admission.Rule
	make func(dc *dorisv1.DorisCluster)
}

// breaking is how each rule is broken, by the end of its field and a word of its
// message.
var breaking = []struct {
	field, word string
	make        func(dc *dorisv1.DorisCluster)
	in          func(spec *dorisv1.BaseSpec)
}{
	{field: "metadata.name", make: func(dc *dorisv1.DorisCluster) { dc.Name = strings.Repeat("a", 50) }},
	{field: "spec.adminUser.name", make: func(dc *dorisv1.DorisCluster) { dc.Spec.AdminUser = &dorisv1.AdminUser{Name: "Admin", Password: "x"} }},
	{field: "spec.feSpec.electionNumber", make: func(dc *dorisv1.DorisCluster) { dc.Spec.FeSpec.ElectionNumber = new(int32(0)) }},
	{field: "spec.cnSpec.image", make: func(dc *dorisv1.DorisCluster) { dc.Spec.CnSpec.Image = "" }},
	{field: ".maxReplicas", make: func(dc *dorisv1.DorisCluster) {
		dc.Spec.CnSpec.AutoScalingPolicy = &dorisv1.AutoScalingPolicy{MinReplicas: new(int32(3)), MaxReplicas: 2}
	}},
	{field: ".minReplicas", make: func(dc *dorisv1.DorisCluster) {
		dc.Spec.CnSpec.AutoScalingPolicy = &dorisv1.AutoScalingPolicy{MinReplicas: new(int32(0)), MaxReplicas: 2}
	}},
	{field: "runtimeConfigPersistence.enabled", make: func(dc *dorisv1.DorisCluster) {
		dc.Spec.RuntimeConfigPersistence = &dorisv1.RuntimeConfigPersistence{Enabled: new(false)}
	}},
	{field: "Spec.replicas", in: func(s *dorisv1.BaseSpec) { s.Replicas = new(int32(1001)) }},
	{field: ".servicePorts", in: func(s *dorisv1.BaseSpec) {
		s.Service = &dorisv1.ExportService{Type: corev1.ServiceTypeNodePort, ServicePorts: []dorisv1.ServicePort{{NodePort: 70000, TargetPort: 9030}}}
	}},
	{field: ".persistentVolumes", word: "one name", in: func(s *dorisv1.BaseSpec) {
		s.PersistentVolumes = append(s.PersistentVolumes, volume("data", "/elsewhere"))
	}},
	{field: ".persistentVolumes", word: "one path", in: func(s *dorisv1.BaseSpec) {
		s.PersistentVolumes = append(s.PersistentVolumes, volume("more", "/data"))
	}},
	{field: ".persistentVolumes", word: "starts with /", in: func(s *dorisv1.BaseSpec) {
		s.PersistentVolumes = append(s.PersistentVolumes, volume("more", "elsewhere"))
	}},
	{field: ".persistentVolumes", word: "provisioner", in: func(s *dorisv1.BaseSpec) {
		s.PersistentVolumes[0].Provisioner = dorisv1.PVCProvisionerOperator
	}},
	{field: ".configMaps", in: func(s *dorisv1.BaseSpec) {
		s.ConfigMapInfo.ConfigMaps = []dorisv1.MountConfigMapInfo{{ConfigMapName: "a"}, {ConfigMapName: "b", MountPath: "/etc/doris"}}
	}},
	{field: ".secrets", in: func(s *dorisv1.BaseSpec) {
		s.Secrets = []dorisv1.Secret{{SecretName: "a", MountPath: "/secret"}, {SecretName: "a", MountPath: "/secret"}}
	}},
}

// mistakes breaks every rule that there is; a rule that nothing breaks fails the test.
func mistakes(t *testing.T) []mistake {
	t.Helper()
	var all []mistake
	for _, r := range admission.Rules() {
		found := false
		for _, b := range breaking {
			if !strings.HasSuffix(r.Field, b.field) || !strings.Contains(r.Message, b.word) {
				continue
			}
			found = true
			all = append(all, mistake{rule: r, make: func(dc *dorisv1.DorisCluster) {
				if b.in == nil {
					b.make(dc)
					return
				}
				b.in(component(dc, r.Field))
			}})
			break
		}
		if !found {
			t.Errorf("nothing here breaks the rule %s of %s (%s)", r.Name, r.Field, r.Message)
		}
	}
	return all
}

func component(dc *dorisv1.DorisCluster, field string) *dorisv1.BaseSpec {
	switch strings.Split(field, ".")[1] {
	case "feSpec":
		return &dc.Spec.FeSpec.BaseSpec
	case "beSpec":
		return &dc.Spec.BeSpec.BaseSpec
	case "cnSpec":
		return &dc.Spec.CnSpec.BaseSpec
	}
	return &dc.Spec.BrokerSpec.BaseSpec
}

func volume(name, path string) dorisv1.PersistentVolume {
	return dorisv1.PersistentVolume{Name: name, MountPath: path, PersistentVolumeClaimSpec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}
}

// sound breaks no rule, and has something of all that rules speak of.
func sound(namespace, name string) *dorisv1.DorisCluster {
	base := func() dorisv1.BaseSpec {
		return dorisv1.BaseSpec{
			Image: "doris:1", Replicas: new(int32(1)), PersistentVolumes: []dorisv1.PersistentVolume{volume("data", "/data"), volume("template", "")},
			ConfigMapInfo: dorisv1.ConfigMapInfo{ConfigMaps: []dorisv1.MountConfigMapInfo{{ConfigMapName: "a"}, {ConfigMapName: "a", MountPath: "/a"}}},
			Secrets:       []dorisv1.Secret{{SecretName: "a"}, {SecretName: "a", MountPath: "/secret"}},
			Service:       &dorisv1.ExportService{Type: corev1.ServiceTypeNodePort, ServicePorts: []dorisv1.ServicePort{{NodePort: 30303, TargetPort: 9030}}},
		}
	}
	return &dorisv1.DorisCluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: dorisv1.GroupVersion.String(), Kind: dorisv1.Kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: dorisv1.DorisClusterSpec{
			FeSpec:     &dorisv1.FeSpec{ElectionNumber: new(int32(1)), BaseSpec: base()},
			BeSpec:     &dorisv1.BeSpec{BaseSpec: base()},
			CnSpec:     &dorisv1.CnSpec{BaseSpec: base(), AutoScalingPolicy: &dorisv1.AutoScalingPolicy{MinReplicas: new(int32(1)), MaxReplicas: 2}},
			BrokerSpec: &dorisv1.BrokerSpec{BaseSpec: base()},
			AdminUser:  &dorisv1.AdminUser{Name: "root"},
		},
	}
}

// stage is an API server and a client of it.
type stage struct {
	*testing.T
	client.Client
	namespace string
	crd       *apiextensionsv1.CustomResourceDefinition
}

func newStage(t *testing.T) *stage {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{dorisv1.AddToScheme, apiextensionsv1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	s := &stage{T: t, namespace: clustertest.Namespace(t), crd: &apiextensionsv1.CustomResourceDefinition{}}
	files, err := filepath.Glob("../../config/crd/doris.selectdb.com_dorisclusters.yaml")
	if err != nil || len(files) != 1 {
		t.Fatalf("definition: %v %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	s.must(yaml.UnmarshalStrict(text, s.crd))
	s.crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	// The cache of discovery is filled when it is first asked for the kind.
	c, err := client.New(clustertest.Shared(t).RESTConfig(), client.Options{Scheme: scheme})
	s.must(err)
	s.Client = c
	return s
}

func (s *stage) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// install installs the definition, with its rules or without, and waits until the
// API server goes by it.
func (s *stage) install(rules bool) {
	s.Helper()
	crd := s.crd.DeepCopy()
	if !rules {
		for i := range crd.Spec.Versions {
			crd.Spec.Versions[i].Schema.OpenAPIV3Schema.XValidations = nil
		}
	}
	s.must(s.Patch(s.Context(), crd, client.Apply, client.FieldOwner("test"), client.ForceOwnership)) //nolint:staticcheck // a typed object is at hand
	probe := sound(s.namespace, "probe")
	probe.Spec.FeSpec.ElectionNumber = new(int32(0))
	err := wait.PollUntilContextTimeout(s.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := s.Create(ctx, probe.DeepCopy(), client.DryRunAll)
		if err != nil && !apierrors.IsInvalid(err) {
			return false, nil // not served yet
		}
		return apierrors.IsInvalid(err) == rules, nil
	})
	s.must(err)
}

// refused checks that an error is a refusal by a rule.
func refused(r admission.Rule, err error) error {
	if err == nil {
		return errors.New("not refused")
	}
	var answer apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &answer) || answer.Status().Details == nil {
		return fmt.Errorf("not refused as invalid: %w", err)
	}
	for _, c := range answer.Status().Details.Causes {
		onField := c.Field == r.Field || strings.HasPrefix(r.Field, "metadata.")
		if onField && strings.Contains(c.Message, r.Field+": "+r.Message) {
			return nil
		}
	}
	return fmt.Errorf("refused, and not at %s: %w", r.Field, err)
}

func TestEachRuleRefusesWhatIsNewAndWrong(t *testing.T) {
	s := newStage(t)
	s.install(true)
	good := sound(s.namespace, "good")
	s.must(s.Create(t.Context(), good))
	good.Status = reported(dorisv1.PhaseAvailable) // as after the first reconcile: only edits are judged from here on
	s.must(s.Status().Update(t.Context(), good))
	for i, m := range mistakes(t) {
		t.Run(fmt.Sprintf("%s %s %d", m.rule.Name, m.rule.Field, i), func(t *testing.T) {
			if !m.rule.OnEdit {
				bad := sound(s.namespace, "bad")
				m.make(bad)
				if err := refused(m.rule, s.Create(t.Context(), bad)); err != nil {
					t.Errorf("created: %v", err)
				}
			}
			if strings.HasPrefix(m.rule.Field, "metadata.") {
				return
			}
			good := &dorisv1.DorisCluster{}
			s.must(s.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "good"}, good))
			m.make(good)
			if err := refused(m.rule, s.Update(t.Context(), good)); err != nil {
				t.Errorf("edited: %v", err)
			}
		})
	}
	if left := s.count(); left != 1 {
		t.Errorf("%d resources are there, want the good one alone", left)
	}
}

func (s *stage) count() int {
	list := &dorisv1.DorisClusterList{}
	s.must(s.List(s.Context(), list, client.InNamespace(s.namespace)))
	return len(list.Items)
}

// TestWhatWasThereStaysWritable makes resources that break each rule before there
// were rules, as users of the existing operator have them, and goes on with them.
func TestWhatWasThereStaysWritable(t *testing.T) {
	s := newStage(t)
	s.install(false)
	all := mistakes(t)
	made := map[int]client.ObjectKey{}
	for i, m := range all {
		if m.rule.OnEdit {
			continue
		}
		bad := sound(s.namespace, fmt.Sprintf("bad-%d", i))
		m.make(bad)
		s.must(s.Create(t.Context(), bad))
		bad.Status = reported("initializing")
		s.must(s.Status().Update(t.Context(), bad))
		made[i] = client.ObjectKeyFromObject(bad)
	}
	s.install(true)
	for i, m := range all {
		key, is := made[i]
		if !is {
			continue
		}
		t.Run(fmt.Sprintf("%s %s %d", m.rule.Name, m.rule.Field, i), func(t *testing.T) { s.goesOn(t, m, key) })
	}
}

func reported(phase dorisv1.ComponentPhase) dorisv1.DorisClusterStatus {
	return dorisv1.DorisClusterStatus{RuntimeConfig: &dorisv1.RuntimeConfigStatus{Kept: []dorisv1.ComponentType{"fe"}}, FeStatus: &dorisv1.ComponentStatus{ComponentCondition: dorisv1.ComponentCondition{
		SubResourceName: "x-fe", Phase: phase, LastTransitionTime: metav1.Unix(1000, 0),
	}}}
}

// goesOn edits a resource that has always broken a rule.
func (s *stage) goesOn(t *testing.T, m mistake, key client.ObjectKey) {
	t.Helper()
	now := func() *dorisv1.DorisCluster {
		dc := &dorisv1.DorisCluster{}
		s.must(s.Get(t.Context(), key, dc))
		return dc
	}
	dc := now()
	dc.Labels = map[string]string{"team": "shop"}
	if err := s.Update(t.Context(), dc); err != nil {
		t.Errorf("a label: %v", err)
	}
	dc = now()
	dc.Status = reported(dorisv1.PhaseAvailable)
	if err := s.Status().Update(t.Context(), dc); err != nil {
		t.Errorf("the status: %v", err)
	}
	dc = now()
	for _, spec := range []*dorisv1.BaseSpec{&dc.Spec.FeSpec.BaseSpec, &dc.Spec.BeSpec.BaseSpec, &dc.Spec.CnSpec.BaseSpec, &dc.Spec.BrokerSpec.BaseSpec} {
		spec.Image = "doris:2"
	}
	if err := s.Update(t.Context(), dc); err != nil {
		t.Errorf("another field of each component: %v", err)
	}
	if strings.HasPrefix(m.rule.Field, "metadata.") {
		return
	}
	dc = now()
	dc.Spec = sound(key.Namespace, key.Name).Spec
	if err := s.Update(t.Context(), dc); err != nil {
		t.Errorf("mended: %v", err)
	}
	dc = now()
	m.make(dc)
	if err := refused(m.rule, s.Update(t.Context(), dc)); err != nil {
		t.Errorf("broken again: %v", err)
	}
}

// TestScaleWithoutComputeNodesSaysWhy uses the scale subresource of a cluster that has
// no compute nodes.
func TestScaleWithoutComputeNodesSaysWhy(t *testing.T) {
	s := newStage(t)
	s.install(true)
	dc := sound(s.namespace, "without")
	dc.Spec.CnSpec = nil
	s.must(s.Create(t.Context(), dc))
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 3}}
	err := s.SubResource("scale").Update(t.Context(), dc, client.WithSubResourceBody(scale))
	if err == nil || !strings.Contains(err.Error(), "has no compute nodes that could be scaled") {
		t.Errorf("the answer is %v", err)
	}
}
