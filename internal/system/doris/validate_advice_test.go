package doris

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// TestValidateAdvises holds that what Kubernetes takes and what has no effect is
// said, and refuses nothing. What is refused is held against a real API server:
// see test/stories.
func TestValidateAdvises(t *testing.T) {
	t.Parallel()
	be := func(change func(*dorisv1.BaseSpec)) func(*dorisv1.DorisCluster) {
		return func(dc *dorisv1.DorisCluster) { change(&dc.Spec.BeSpec.BaseSpec) }
	}
	label := func(key, value string) func(*dorisv1.DorisCluster) {
		return be(func(b *dorisv1.BaseSpec) { b.PodLabels = map[string]string{key: value} })
	}
	tests := map[string]struct {
		change func(dc *dorisv1.DorisCluster)
		// want is the field that is advised on; empty for none.
		want string
	}{
		"name that starts with a digit":                {func(dc *dorisv1.DorisCluster) { dc.Name = "1shop" }, "metadata.name"},
		"label that selects Pods, with another value":  {label(dorisv1.LabelComponent, "db"), "spec.beSpec.podLabels[app.kubernetes.io/component]"},
		"label that selects Pods, with its own value":  {label(dorisv1.LabelComponent, "be"), ""},
		"label of the cluster, with another value":     {label(dorisv1.LabelCluster, "other"), "spec.beSpec.podLabels[app.doris.cluster]"},
		"label that Kubernetes sets":                   {label("controller-revision-hash", "x"), "spec.beSpec.podLabels[controller-revision-hash]"},
		"label of the user":                            {label("example.com/team", "shop"), ""},
		"pull secret that cannot exist":                {be(func(b *dorisv1.BaseSpec) { b.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "A b"}} }), "spec.beSpec.imagePullSecrets[0].name"},
		"pull secret without a name":                   {be(func(b *dorisv1.BaseSpec) { b.ImagePullSecrets = []corev1.LocalObjectReference{{}} }), "spec.beSpec.imagePullSecrets[0].name"},
		"variable twice":                               {be(func(b *dorisv1.BaseSpec) { b.EnvVars = []corev1.EnvVar{{Name: "A"}, {Name: "B"}, {Name: "A"}} }), "spec.beSpec.envVars[0]"},
		"variable with a name that only new ones take": {be(func(b *dorisv1.BaseSpec) { b.EnvVars = []corev1.EnvVar{{Name: "a b/c"}} }), ""},
		"operator of tolerations that is new":          {be(func(b *dorisv1.BaseSpec) { b.Tolerations = []corev1.Toleration{{Key: "a", Operator: "Gt", Value: "5"}} }), ""},
		"negative time to start":                       {be(func(b *dorisv1.BaseSpec) { b.StartTimeout = -1 }), "spec.beSpec.startTimeout"},
		"negative time between checks":                 {be(func(b *dorisv1.BaseSpec) { b.ReadinessProbePolicy = &dorisv1.ReadinessProbePolicy{PeriodSeconds: -1} }), "spec.beSpec.readinessProbePolicy.periodSeconds"},
		"annotation of a Service that is the operator's": {be(func(b *dorisv1.BaseSpec) {
			b.Service = &dorisv1.ExportService{Annotations: map[string]string{meta.AnnotationInputs: "x"}}
		}), "spec.beSpec.service.annotations[" + meta.AnnotationInputs + "]"},
		"one node port twice in a Service without any": {be(func(b *dorisv1.BaseSpec) {
			b.Service = &dorisv1.ExportService{ServicePorts: []dorisv1.ServicePort{{NodePort: 30001, TargetPort: 8040}, {NodePort: 30001, TargetPort: 9050}}}
		}), ""},
		"image by digest, at a registry with a port": {be(func(b *dorisv1.BaseSpec) { b.Image = "[fd00::1]:5000/Team/doris:be_2.1@sha256:abc" }), ""},
		"address with leading zeros":                 {be(func(b *dorisv1.BaseSpec) { b.HostAliases = []corev1.HostAlias{{IP: "010.0.0.1"}} }), ""},
		"root where the container says otherwise": {be(func(b *dorisv1.BaseSpec) {
			b.SecurityContext = &corev1.PodSecurityContext{RunAsUser: new(int64(0)), RunAsNonRoot: new(true)}
			b.ContainerSecurityContext = &corev1.SecurityContext{RunAsUser: new(int64(1000))}
		}), ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dc := valid()
			test.change(dc)
			findings := Validate(dc)
			if test.want == "" {
				if len(findings) > 0 {
					t.Errorf("found %v", findings)
				}
				return
			}
			if len(findings) != 1 || findings[0].Severity != plan.Warning || findings[0].Field != test.want || !strings.Contains(findings[0].Message, ": ") {
				t.Errorf("found %+v, want a warning about %s", findings, test.want)
			}
		})
	}
}

// TestValidateTellsNoValueOfAVariable holds that nothing that may be a password
// gets into a message.
func TestValidateTellsNoValueOfAVariable(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	dc := valid()
	dc.Spec.AdminUser = &dorisv1.AdminUser{Name: "admin", Password: secret}
	dc.Spec.BeSpec.EnvVars = []corev1.EnvVar{
		{Name: "", Value: secret},
		{Name: "A=B", Value: secret},
		{Name: "A", Value: secret},
		{Name: "A", Value: secret, ValueFrom: &corev1.EnvVarSource{}},
		{Name: "A", Value: secret, ValueFrom: &corev1.EnvVarSource{FileKeyRef: &corev1.FileKeySelector{}}},
	}
	findings := Validate(dc)
	if len(findings) < 6 {
		t.Errorf("found only %v", findings)
	}
	for _, f := range findings {
		if strings.Contains(f.String(), secret) {
			t.Errorf("a value is told: %s", f)
		}
	}
}
