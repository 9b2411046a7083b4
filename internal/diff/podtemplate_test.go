package diff_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/fairlead-dev/fairlead/internal/diff"
)

// asJSON is the form in which templates are compared.
func asJSON(t *testing.T, template corev1.PodTemplateSpec) map[string]any {
	t.Helper()
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&template)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	template := corev1.PodTemplateSpec{}
	if err := yaml.UnmarshalStrict([]byte(text), &template); err != nil {
		t.Fatal(err)
	}
	m := asJSON(t, template)
	if spec := m["spec"].(map[string]any); spec["containers"] == nil {
		delete(spec, "containers") // Go's null for none
	}
	return m
}

func TestFillPodTemplate(t *testing.T) {
	const container = `{name: c, image: "i:1", imagePullPolicy: IfNotPresent, terminationMessagePath: /dev/termination-log, terminationMessagePolicy: File, resources: {}`
	const pod = `dnsPolicy: ClusterFirst, restartPolicy: Always, schedulerName: default-scheduler, terminationGracePeriodSeconds: 30, securityContext: {}`
	tests := map[string]struct{ in, want string }{
		"an empty Pod gets the defaults of a Pod": {
			`{spec: {containers: []}}`, `{spec: {containers: [], ` + pod + `}}`,
		},
		"what is set stays, also a zero": {
			`{spec: {terminationGracePeriodSeconds: 0, dnsPolicy: Default, restartPolicy: Never, schedulerName: mine, securityContext: {runAsUser: 0}}}`,
			`{spec: {terminationGracePeriodSeconds: 0, dnsPolicy: Default, restartPolicy: Never, schedulerName: mine, securityContext: {runAsUser: 0}}}`,
		},
		"the service account has two names": {
			`{spec: {serviceAccountName: sa}}`, `{spec: {serviceAccountName: sa, serviceAccount: sa, ` + pod + `}}`,
		},
		"containers of both kinds": {
			`{spec: {initContainers: [{name: c, image: "i:1"}], containers: [{name: c, image: "i:1"}]}}`,
			`{spec: {initContainers: [` + container + `}], containers: [` + container + `}], ` + pod + `}}`,
		},
		"ports, variables and files": {
			`{spec: {containers: [{name: c, image: "i:1", ports: [{containerPort: 1}, {containerPort: 2, protocol: UDP}], env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, {name: B, value: ""}, {name: C, valueFrom: {fileKeyRef: {volumeName: v, path: p, key: k}}}]}]}}`,
			`{spec: {containers: [` + container + `, ports: [{containerPort: 1, protocol: TCP}, {containerPort: 2, protocol: UDP}], env: [{name: A, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: metadata.name}}}, {name: B}, {name: C, valueFrom: {fileKeyRef: {volumeName: v, path: p, key: k, optional: false}}}]}], ` + pod + `}}`,
		},
		"probes and hooks": {
			`{spec: {containers: [{name: c, image: "i:1", livenessProbe: {tcpSocket: {port: 1}}, readinessProbe: {httpGet: {port: 2}, timeoutSeconds: 9}, startupProbe: {grpc: {port: 3}}, lifecycle: {preStop: {httpGet: {port: 4, path: /x}}}}]}}`,
			`{spec: {containers: [` + container + `,
			  livenessProbe: {tcpSocket: {port: 1}, timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3},
			  readinessProbe: {httpGet: {port: 2, path: /, scheme: HTTP}, timeoutSeconds: 9, periodSeconds: 10, successThreshold: 1, failureThreshold: 3},
			  startupProbe: {grpc: {port: 3, service: ""}, timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3},
			  lifecycle: {preStop: {httpGet: {port: 4, path: /x, scheme: HTTP}}}}], ` + pod + `}}`,
		},
		"volumes": {
			`{spec: {volumes: [{name: a, configMap: {name: m}}, {name: b, secret: {secretName: s, defaultMode: 0}}, {name: c, downwardAPI: {items: [{path: p, fieldRef: {fieldPath: f}}]}}, {name: d}, {name: e, hostPath: {path: /x}},
			  {name: f, projected: {sources: [{serviceAccountToken: {path: t}}, {downwardAPI: {items: [{path: p, resourceFieldRef: {resource: limits.cpu}}]}}]}}, {name: g, ephemeral: {volumeClaimTemplate: {spec: {resources: {requests: {storage: 1024Mi}}}}}}, {name: h, emptyDir: {sizeLimit: 2048Mi}}]}}`,
			`{spec: {volumes: [{name: a, configMap: {name: m, defaultMode: 420}}, {name: b, secret: {secretName: s, defaultMode: 0}}, {name: c, downwardAPI: {defaultMode: 420, items: [{path: p, fieldRef: {apiVersion: v1, fieldPath: f}}]}}, {name: d, emptyDir: {}}, {name: e, hostPath: {path: /x, type: ""}},
			  {name: f, projected: {defaultMode: 420, sources: [{serviceAccountToken: {path: t, expirationSeconds: 3600}}, {downwardAPI: {items: [{path: p, resourceFieldRef: {resource: limits.cpu, divisor: "0"}}]}}]}}, {name: g, ephemeral: {volumeClaimTemplate: {spec: {volumeMode: Filesystem, resources: {requests: {storage: 1Gi}}}}}}, {name: h, emptyDir: {sizeLimit: 2Gi}}], ` + pod + `}}`,
		},
		"requests are not made from limits, nor host ports from ports": {
			`{spec: {hostNetwork: true, containers: [{name: c, image: "i:1", resources: {limits: {cpu: 1}}, ports: [{containerPort: 1}]}]}}`,
			`{spec: {hostNetwork: true, containers: [{name: c, image: "i:1", imagePullPolicy: IfNotPresent, terminationMessagePath: /dev/termination-log, terminationMessagePolicy: File, resources: {limits: {cpu: 1}}, ports: [{containerPort: 1, protocol: TCP}]}], ` + pod + `}}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, want := parse(t, test.in), parse(t, test.want)
			diff.FillPodTemplate(got)
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("filled (-want +got):\n%s", d)
			}
		})
	}
}

func TestFillPodTemplateChoosesThePullPolicy(t *testing.T) {
	for image, want := range map[string]string{
		"doris": "Always", "doris:latest": "Always", "registry:5000/doris": "Always",
		"doris:2.1": "IfNotPresent", "registry:5000/doris:2.1": "IfNotPresent",
		"doris@sha256:00": "IfNotPresent", "doris:latest@sha256:00": "Always",
	} {
		template := asJSON(t, corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: image}}}})
		diff.FillPodTemplate(template)
		c := template["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
		if got := c["imagePullPolicy"]; got != want {
			t.Errorf("%s: %v, want %s", image, got, want)
		}
	}
}

func TestQuantitiesThatMeanTheSameAreEqual(t *testing.T) {
	filled := func(quantity any) map[string]any {
		template := map[string]any{"spec": map[string]any{"containers": []any{map[string]any{
			"name": "c", "resources": map[string]any{"limits": map[string]any{"cpu": quantity}},
		}}}}
		diff.FillPodTemplate(template)
		return template
	}
	for _, same := range [][2]any{{"1000m", "1"}, {int64(2), "2"}, {"0.5", "500m"}, {"1024Mi", "1Gi"}} {
		if d := cmp.Diff(filled(same[0]), filled(same[1])); d != "" {
			t.Errorf("%v and %v differ:\n%s", same[0], same[1], d)
		}
	}
	if cmp.Equal(filled("1"), filled("2")) {
		t.Error("1 and 2 are the same")
	}
}

// rendered is a template as a renderer makes it: without defaults.
func rendered() corev1.PodTemplateSpec {
	template := corev1.PodTemplateSpec{}
	template.Labels = map[string]string{"app": "fe"}
	template.Spec.NodeSelector = map[string]string{"disk": "ssd"}
	template.Spec.Containers = []corev1.Container{{
		Name: "fe", Image: "doris:1", Env: []corev1.EnvVar{{Name: "A", Value: "1"}},
		Ports:        []corev1.ContainerPort{{Name: "http", ContainerPort: 80}},
		VolumeMounts: []corev1.VolumeMount{{Name: "v", MountPath: "/v"}},
		Resources:    corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1")}},
	}}
	template.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	return template
}

func TestExtraFields(t *testing.T) {
	tests := map[string]struct {
		edit func(*corev1.PodTemplateSpec)
		want []string
	}{
		"nothing but defaults": {func(*corev1.PodTemplateSpec) {}, nil},
		"another value is not extra": {func(t *corev1.PodTemplateSpec) {
			t.Spec.Containers[0].Image, t.Spec.Containers[0].Env[0].Value = "other", "2"
		}, nil},
		"fewer fields are not extra": {func(t *corev1.PodTemplateSpec) {
			t.Spec.Containers[0].Env, t.Spec.NodeSelector, t.Spec.Containers[0].Resources.Limits = nil, nil, nil
		}, nil},
		"labels and annotations are not ours": {func(t *corev1.PodTemplateSpec) {
			t.Labels["team"], t.Annotations = "x", map[string]string{"kubectl.kubernetes.io/restartedAt": "now"}
		}, nil},
		"a variable, a port and a mount": {func(t *corev1.PodTemplateSpec) {
			c := &t.Spec.Containers[0]
			c.Env = append(c.Env, corev1.EnvVar{Name: "X", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}})
			c.Ports = append(c.Ports, corev1.ContainerPort{ContainerPort: 81})
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "v", MountPath: "/w"})
		}, []string{
			`spec.template.spec.containers[name="fe"].env[name="X"]`,
			`spec.template.spec.containers[name="fe"].ports[containerPort=81,protocol="TCP"]`,
			`spec.template.spec.containers[name="fe"].volumeMounts[mountPath="/w"]`,
		}},
		"a sidecar, its volume and an init container": {func(t *corev1.PodTemplateSpec) {
			t.Spec.Containers = append(t.Spec.Containers, corev1.Container{Name: "side", Image: "s:1"})
			t.Spec.InitContainers = append(t.Spec.InitContainers, corev1.Container{Name: "init", Image: "s:1"})
			t.Spec.Volumes = append(t.Spec.Volumes, corev1.Volume{Name: "s"})
		}, []string{
			`spec.template.spec.containers[name="side"]`,
			`spec.template.spec.initContainers`,
			`spec.template.spec.volumes[name="s"]`,
		}},
		"a probe is one field": {func(t *corev1.PodTemplateSpec) {
			t.Spec.Containers[0].LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(1)}}}
		}, []string{`spec.template.spec.containers[name="fe"].livenessProbe`}},
		"a field inside of what is rendered": {func(t *corev1.PodTemplateSpec) {
			t.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: new(int64(1))}
			t.Spec.Containers[0].Resources.Limits["memory"] = resource.MustParse("1Gi")
			t.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1")}
			t.Spec.Volumes[0].EmptyDir.Medium = corev1.StorageMediumMemory
		}, []string{
			`spec.template.spec.containers[name="fe"].resources.limits.memory`,
			`spec.template.spec.containers[name="fe"].resources.requests`,
			`spec.template.spec.securityContext.runAsUser`,
			`spec.template.spec.volumes[name="v"].emptyDir.medium`,
		}},
		"a value that is one whole differs or not": {func(t *corev1.PodTemplateSpec) {
			t.Spec.NodeSelector["zone"] = "a"
			t.Spec.Tolerations = []corev1.Toleration{{Key: "k"}}
		}, []string{`spec.template.spec.tolerations`}},
		"a name that is there twice": {func(t *corev1.PodTemplateSpec) {
			c := &t.Spec.Containers[0]
			c.Env = append(c.Env, corev1.EnvVar{Name: "A", Value: "3"}, corev1.EnvVar{Name: "X"}, corev1.EnvVar{Name: "X", Value: "2"})
		}, []string{`spec.template.spec.containers[name="fe"].env[name="X"]`}},
	}
	engine := diff.New(clientgoscheme.Scheme)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			template := rendered()
			test.edit(&template)
			live := asJSON(t, template)
			diff.FillPodTemplate(live) // as the API server does
			want, before := asJSON(t, rendered()), runtime.DeepCopyJSON(live)
			got, err := engine.ExtraFields(want, live)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(test.want, got); d != "" {
				t.Errorf("extra fields (-want +got):\n%s", d)
			}
			if !cmp.Equal(want, asJSON(t, rendered())) || !cmp.Equal(before, live) {
				t.Error("a template was changed")
			}
		})
	}
}
