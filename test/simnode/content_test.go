package simnode

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func named(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }

func configMapVolume(name, configMap string, optional bool, items ...corev1.KeyToPath) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: named(configMap), Items: items, Optional: &optional,
	}}}
}

func TestMount(t *testing.T) {
	have := content{
		{configMapKind, "conf"}: {"be.conf": []byte("a=1"), "log.conf": []byte("b")},
		{secretKind, "cred"}:    {"password": []byte("p")},
	}
	for _, tc := range []struct {
		name   string
		volume corev1.Volume
		want   map[string]string
		fails  string
	}{
		{name: "all keys", volume: configMapVolume("v", "conf", false), want: map[string]string{"be.conf": "a=1", "log.conf": "b"}},
		{
			name: "chosen keys at their paths", volume: configMapVolume("v", "conf", false, corev1.KeyToPath{Key: "be.conf", Path: "x/y"}),
			want: map[string]string{"x/y": "a=1"},
		},
		{name: "optional and missing is empty", volume: configMapVolume("v", "no", true), want: map[string]string{}},
		{
			name: "optional with a missing key leaves it out", volume: configMapVolume("v", "conf", true, corev1.KeyToPath{Key: "no", Path: "no"}),
			want: map[string]string{},
		},
		{
			name: "missing key", volume: configMapVolume("v", "conf", false, corev1.KeyToPath{Key: "no", Path: "no"}),
			fails: `MountVolume.SetUp failed for volume "v" : configmap references non-existent config key: no`,
		},
		{
			name: "missing object", volume: configMapVolume("v", "no", false),
			fails: `MountVolume.SetUp failed for volume "v" : configmap "no" not found`,
		},
		{
			name: "projected sources lie over each other",
			volume: corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
				Sources: []corev1.VolumeProjection{
					{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: named("conf")}},
					{Secret: &corev1.SecretProjection{LocalObjectReference: named("cred"), Items: []corev1.KeyToPath{{Key: "password", Path: "log.conf"}}}},
					{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
						{Path: "name", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}},
					}}},
				},
			}}},
			want: map[string]string{"be.conf": "a=1", "log.conf": "p", "name": "be-0"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pod := testPod()
			pod.Spec.Volumes = []corev1.Volume{tc.volume}
			got, failed := have.mount(pod)
			if tc.fails != "" {
				if len(failed) != 1 || failed[0].text != tc.fails {
					t.Errorf("failed with %v, want %q", failed, tc.fails)
				}
				return
			}
			if diff := cmp.Diff(Volumes{"v": tc.want}, got); diff != "" || len(failed) > 0 {
				t.Errorf("failed with %v; volumes (-want +got):\n%s", failed, diff)
			}
		})
	}
}

func TestReferences(t *testing.T) {
	pod := testPod(corev1.Container{
		Name:    "be",
		EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: named("s2")}}},
		Env: []corev1.EnvVar{
			{Name: "A", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: named("c1")}}},
			{Name: "B", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: named("s1")}}},
		},
	})
	pod.Spec.InitContainers = []corev1.Container{{
		Name: "init", EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: named("c2")}}},
	}}
	pod.Spec.Volumes = []corev1.Volume{
		configMapVolume("v", "c1", false),
		{Name: tokenVolume + "x", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: named("kube-root-ca.crt")}}},
		}}},
	}
	want := []reference{{configMapKind, "c1"}, {configMapKind, "c2"}, {secretKind, "s1"}, {secretKind, "s2"}}
	if diff := cmp.Diff(want, references(pod), cmp.AllowUnexported(reference{})); diff != "" {
		t.Errorf("references (-want +got):\n%s", diff)
	}
}

func TestEnvironment(t *testing.T) {
	have := content{
		{configMapKind, "conf"}: {"a": []byte("1")},
		{secretKind, "cred"}:    {"password": []byte("p")},
	}
	from := func(source corev1.EnvVarSource) corev1.EnvVar { return corev1.EnvVar{Name: "X", ValueFrom: &source} }
	field := func(path string) corev1.EnvVar {
		return from(corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}})
	}
	share := func(name, divisor string) corev1.EnvVar {
		return from(corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: name, Divisor: resource.MustParse(divisor)}})
	}
	optional := true
	for _, tc := range []struct {
		name  string
		env   corev1.EnvVar
		want  string
		unset bool
		fails string
	}{
		{name: "value with references", env: corev1.EnvVar{Name: "X", Value: "$(FIRST)/$(P_a)"}, want: "one/1"},
		{name: "key of a secret", env: from(corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: named("cred"), Key: "password"}}), want: "p"},
		{
			name:  "missing key",
			env:   from(corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: named("cred"), Key: "no"}}),
			fails: "couldn't find key no in Secret ns/cred",
		},
		{
			name:  "missing object",
			env:   from(corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: named("no"), Key: "a"}}),
			fails: `configmap "no" not found`,
		},
		{
			name:  "optional and missing",
			env:   from(corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: named("no"), Key: "a", Optional: &optional}}),
			unset: true,
		},
		{name: "pod's name", env: field("metadata.name"), want: "be-0"},
		{name: "pod's address", env: field("status.podIP"), want: "10.0.0.1"},
		{name: "label", env: field("metadata.labels['app']"), want: "doris"},
		{name: "memory limit in mebibytes", env: share("limits.memory", "1Mi"), want: "1024"},
		{name: "cpu request rounded up", env: share("requests.cpu", "1"), want: "2"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pod := testPod()
			pod.Labels = map[string]string{"app": "doris"}
			ctr := &corev1.Container{
				Name:    "be",
				EnvFrom: []corev1.EnvFromSource{{Prefix: "P_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: named("conf")}}},
				Env:     []corev1.EnvVar{{Name: "FIRST", Value: "one"}, tc.env},
				Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500m")},
					Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
				},
			}
			env, err := have.environment(pod, ctr, address{pod: "10.0.0.1", host: "10.0.0.2"})
			if tc.fails != "" {
				if err == nil || err.Error() != tc.fails {
					t.Errorf("error %v, want %q", err, tc.fails)
				}
				return
			}
			got, set := env["X"]
			if err != nil || got != tc.want || set == tc.unset {
				t.Errorf("X is %q (set: %t), error %v, want %q", got, set, err, tc.want)
			}
		})
	}
}

func TestFilesOf(t *testing.T) {
	volumes := Volumes{"conf": {"be.conf": "a", "dir/x": "b"}}
	for _, tc := range []struct {
		name  string
		mount corev1.VolumeMount
		want  map[string]string
	}{
		{"whole volume", corev1.VolumeMount{Name: "conf", MountPath: "/etc"}, map[string]string{"/etc/be.conf": "a", "/etc/dir/x": "b"}},
		{"one file", corev1.VolumeMount{Name: "conf", MountPath: "/etc/my.conf", SubPath: "be.conf"}, map[string]string{"/etc/my.conf": "a"}},
		{"a folder", corev1.VolumeMount{Name: "conf", MountPath: "/d", SubPathExpr: "$(D)"}, map[string]string{"/d/x": "b"}},
		{"another volume", corev1.VolumeMount{Name: "data", MountPath: "/d"}, map[string]string{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := &corev1.Container{VolumeMounts: []corev1.VolumeMount{tc.mount}}
			if diff := cmp.Diff(tc.want, filesOf(c, volumes, map[string]string{"D": "dir"})); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}
