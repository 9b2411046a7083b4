package doris

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// eventful returns a cluster that sets about every field whose path is
// translated.
func eventful() *dorisv1.DorisCluster {
	dc := valid()
	dc.UID = "u"
	be := &dc.Spec.BeSpec.BaseSpec
	claim := corev1.PersistentVolumeClaimSpec{Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}}
	be.PersistentVolumes = []dorisv1.PersistentVolume{
		{Name: "logs", MountPath: "/opt/apache-doris/be/log", PersistentVolumeClaimSpec: claim},
		{Name: "data", PersistentVolumeClaimSpec: claim},
	}
	be.EnvVars = []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "hunter2"}}
	be.ConfigMapInfo.ConfigMaps = []dorisv1.MountConfigMapInfo{{ConfigMapName: "extra", MountPath: "/extra"}}
	be.Secrets = []dorisv1.Secret{{SecretName: "keys", MountPath: "/keys"}}
	be.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
		{Weight: 1, PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: "zone"}},
	}}}
	be.Service = &dorisv1.ExportService{Type: corev1.ServiceTypeNodePort, ServicePorts: []dorisv1.ServicePort{{TargetPort: 8040, NodePort: 30040}}}
	be.SystemInitialization = &dorisv1.SystemInitialization{InitImage: "tools", Command: []string{"true"}}
	return dc
}

func TestTranslateRefusal(t *testing.T) {
	t.Parallel()
	dc := eventful()
	objects, findings := Desired(dc, Inputs{Revision: LatestRevision, Bootstrapped: true, ConfigMaps: map[string]*corev1.ConfigMap{"extra": {}}})
	if refused(findings) {
		t.Fatal(findings)
	}
	fe, _ := objects.Component(dorisv1.ComponentFE)
	be, _ := objects.Component(dorisv1.ComponentBE)
	set, internal, access := be.StatefulSet, be.Services[0], be.Services[1]
	main := set.Spec.Template.Spec.Containers[0]
	place := func(found func(int) bool, n int) int {
		for i := range n {
			if found(i) {
				return i
			}
		}
		t.Fatal("the cluster of this test lacks something")
		return 0
	}
	env := func(name string) int {
		return place(func(i int) bool { return main.Env[i].Name == name }, len(main.Env))
	}
	mount := func(at string) int {
		return place(func(i int) bool { return main.VolumeMounts[i].MountPath == at }, len(main.VolumeMounts))
	}
	volume := func(name string) int {
		list := set.Spec.Template.Spec.Volumes
		return place(func(i int) bool { return list[i].Name == name }, len(list))
	}
	web := place(func(i int) bool { return access.Spec.Ports[i].Port == 8040 }, len(access.Spec.Ports))
	const pod = "spec.template.spec."
	tests := []struct {
		object client.Object
		// at is the path that the API server names.
		at, want string
	}{
		{set, pod + "tolerations[0].operator", "spec.beSpec.tolerations[0].operator"},
		{set, pod + "hostAliases[1].ip", "spec.beSpec.hostAliases[1].ip"},
		{set, pod + "nodeSelector", "spec.beSpec.nodeSelector"},
		{set, pod + "imagePullSecrets[0]", "spec.beSpec.imagePullSecrets[0]"},
		{set, pod + "serviceAccountName", "spec.beSpec.serviceAccount"},
		{set, pod + "securityContext.fsGroup", "spec.beSpec.securityContext.fsGroup"},
		{set, pod + "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values[0]", "spec.beSpec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values[0]"},
		{set, pod + "affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[2].weight", "spec.beSpec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight"},
		{set, pod + "affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight", "spec.beSpec"},
		{set, fmt.Sprintf(pod+"containers[0].env[%d].name", env("A")), "spec.beSpec.envVars[0].name"},
		{set, fmt.Sprintf(pod+"containers[0].env[%d].valueFrom.fieldRef", env("B")), "spec.beSpec.envVars[1].valueFrom.fieldRef"},
		{set, fmt.Sprintf(pod+"containers[0].env[%d].name", env("POD_IP")), "spec.beSpec"},
		{set, pod + "containers[0].env[99].name", "spec.beSpec"},
		{set, pod + "containers[0].image", "spec.beSpec.image"},
		{set, pod + "containers[0].resources.requests", "spec.beSpec.requests"},
		{set, pod + "containers[0].resources.limits[example.com/gpu]", "spec.beSpec.limits[example.com/gpu]"},
		{set, pod + "containers[0].securityContext", "spec.beSpec.containerSecurityContext"},
		{set, pod + "containers[0].startupProbe.failureThreshold", "spec.beSpec.startTimeout"},
		{set, pod + "containers[0].livenessProbe.timeoutSeconds", "spec.beSpec.liveTimeout"},
		{set, pod + "containers[0].readinessProbe.periodSeconds", "spec.beSpec.readinessProbePolicy.periodSeconds"},
		{set, pod + "containers[0].ports[0].containerPort", "spec.beSpec"},
		{set, fmt.Sprintf(pod+"containers[0].volumeMounts[%d].mountPath", mount("/opt/apache-doris/be/log")), "spec.beSpec.persistentVolumes[0].mountPath"},
		{set, fmt.Sprintf(pod+"containers[0].volumeMounts[%d].mountPath", mount("/opt/apache-doris/be/storage")), "spec.beSpec.persistentVolumes[1]"},
		{set, fmt.Sprintf(pod+"containers[0].volumeMounts[%d].mountPath", mount("/extra")), "spec.beSpec.configMapInfo.configMaps[0]"},
		{set, fmt.Sprintf(pod+"containers[0].volumeMounts[%d].mountPath", mount("/etc/podinfo")), "spec.beSpec"},
		{set, fmt.Sprintf(pod+"volumes[%d].configMap.name", volume("extra")), "spec.beSpec.configMapInfo.configMaps[0]"},
		{set, fmt.Sprintf(pod+"volumes[%d].secret.secretName", volume("keys")), "spec.beSpec.secrets[0]"},
		{set, pod + "initContainers[0].image", "spec.beSpec.systemInitialization.initImage"},
		{set, pod + "initContainers[0].resources.limits", "spec.beSpec.limits"},
		{fe.StatefulSet, pod + "containers[0].image", "spec.feSpec.image"},
		{fe.StatefulSet, pod + "initContainers[0].image", "spec.feSpec.image"},
		{set, "spec.template.labels", "spec.beSpec.podLabels"},
		{set, "spec.template.metadata.labels", "spec.beSpec.podLabels"},
		{set, "spec.template.annotations", "spec.beSpec.annotations"},
		{set, "spec.template.annotations[controller.kubernetes.io/pod-deletion-cost]", "spec.beSpec.annotations[controller.kubernetes.io/pod-deletion-cost]"},
		{set, "spec.template.annotations.seccomp.security.alpha.kubernetes.io/pod", "spec.beSpec.annotations[seccomp.security.alpha.kubernetes.io/pod]"},
		{set, "spec.volumeClaimTemplates[0].spec.accessModes", "spec.beSpec.persistentVolumes[0].persistentVolumeClaimSpec.accessModes"},
		{set, "spec.volumeClaimTemplates[1].spec.resources[storage]", "spec.beSpec.persistentVolumes[1].persistentVolumeClaimSpec.resources.requests.storage"},
		{set, "spec.replicas", "spec.beSpec.replicas"},
		{set, "spec.serviceName", "metadata.name"},
		{set, "metadata.name", "metadata.name"},
		{set, "spec.podManagementPolicy", "spec.beSpec"},
		{access, fmt.Sprintf("spec.ports[%d].nodePort", web), "spec.beSpec.service.servicePorts[0].nodePort"},
		{access, "spec.ports[0].port", "spec.beSpec"},
		{access, "spec.type", "spec.beSpec.service.type"},
		{access, "metadata.annotations[a]", "spec.beSpec.service.annotations[a]"},
		{internal, "metadata.annotations[a]", "spec.beSpec"},
		{internal, "metadata.name", "metadata.name"},
		{adminSecretOf("shop"), "metadata.name", "metadata.name"},
	}
	for _, tc := range tests {
		for _, object := range []client.Object{tc.object, asSent(t, tc.object)} {
			err := fmt.Errorf("applying it: %w", invalid(object, tc.at))
			got := TranslateRefusal(dc, object, err)
			if len(got) != 1 || got[0].Field != tc.want {
				t.Errorf("%T %s: translated to %v, want %s", object, tc.at, got, tc.want)
				continue
			}
			if f := got[0]; f.Severity != plan.Refusal || f.Reason == "" || !strings.Contains(f.Message, "this is why") {
				t.Errorf("%s: %+v does not say why", tc.at, f)
			}
			whole := tc.want != "spec.beSpec" && tc.want != "spec.feSpec"
			if whole && strings.Contains(got[0].Message, tc.at) {
				t.Errorf("%s is translated and still named: %s", tc.at, got[0].Message)
			}
		}
	}
}

func invalid(o client.Object, at string) error {
	list := field.ErrorList{field.Invalid(field.NewPath(at), "x", "this is why")}
	return apierrors.NewInvalid(schema.GroupKind{Kind: "Some"}, o.GetName(), list)
}

// asSent is an object as an apply sends it.
func asSent(t *testing.T, o client.Object) client.Object {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}

func adminSecretOf(cluster string) client.Object {
	return &corev1.Secret{TypeMeta: metav1.TypeMeta{Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Name: AdminSecretName(cluster)}}
}

func TestTranslateRefusalOfWhatCannotBeMerged(t *testing.T) {
	t.Parallel()
	dc := eventful()
	objects, _ := Desired(dc, Inputs{Revision: LatestRevision})
	be, _ := objects.Component(dorisv1.ComponentBE)
	err := apierrors.NewInternalError(errors.New("x"))
	err.ErrStatus.Message = `failed to create typed patch object (shop/shop-be; apps/v1, Kind=StatefulSet): .spec.template.spec.hostAliases: duplicate entries for key [ip="10.0.0.1"]`
	got := TranslateRefusal(dc, be.StatefulSet, err)
	if len(got) != 1 || got[0].Field != "spec.beSpec.hostAliases" || !strings.Contains(got[0].Message, `duplicate entries for key [ip="10.0.0.1"]`) {
		t.Errorf("translated to %v", got)
	}
}

func TestTranslateRefusalLeavesOtherErrorsAlone(t *testing.T) {
	t.Parallel()
	dc := eventful()
	objects, _ := Desired(dc, Inputs{Revision: LatestRevision})
	be, _ := objects.Component(dorisv1.ComponentBE)
	stranger := be.StatefulSet.DeepCopy()
	stranger.Name = "strange"
	conflict := &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonConflict, Details: &metav1.StatusDetails{
		Causes: []metav1.StatusCause{{Type: metav1.CauseTypeFieldManagerConflict, Field: ".spec.replicas", Message: "conflict with x"}},
	}}}
	for name, tc := range map[string]struct {
		object client.Object
		err    error
	}{
		"no error":             {be.StatefulSet, nil},
		"a lost connection":    {be.StatefulSet, errors.New("EOF")},
		"a quota":              {be.StatefulSet, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New("exceeded quota"))},
		"another's object":     {stranger, invalid(stranger, "spec.replicas")},
		"a conflict of owners": {be.StatefulSet, conflict},
	} {
		if got := TranslateRefusal(dc, tc.object, tc.err); got != nil {
			t.Errorf("%s is translated to %v", name, got)
		}
	}
}

// FuzzTranslateRefusal holds that no path makes it fail, and that the answer is
// always a field of the DorisCluster.
func FuzzTranslateRefusal(f *testing.F) {
	dc := eventful()
	objects, _ := Desired(dc, Inputs{Revision: LatestRevision})
	be, _ := objects.Component(dorisv1.ComponentBE)
	for _, at := range []string{"", ".", "[", "spec.template.spec.containers[0].env[3].name", "spec.template.spec.volumes[-1]", "spec.template.spec.containers[", "spec.volumeClaimTemplates[1]", "spec.ports[0].nodePort"} {
		f.Add(at)
	}
	f.Fuzz(func(t *testing.T, at string) {
		for _, o := range []client.Object{be.StatefulSet, be.Services[1]} {
			for _, got := range TranslateRefusal(dc, o, invalid(o, at)) {
				if !strings.HasPrefix(got.Field, "spec.beSpec") && got.Field != "metadata.name" {
					t.Errorf("%q is translated to %q", at, got.Field)
				}
			}
		}
	})
}
