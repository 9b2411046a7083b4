package runtimeconfig

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// pod is a rendered Pod of a backend.
func pod(config corev1.VolumeSource) *corev1.PodSpec {
	return &corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "users-own"}},
		Containers: []corev1.Container{{
			Name: "be", Image: "doris:be", ImagePullPolicy: corev1.PullIfNotPresent,
			Command: []string{"entrypoint"}, Args: []string{"fe"},
			Env:             []corev1.EnvVar{{Name: "SECRET", Value: "s3cret"}, nameOfPod(envPodName)},
			SecurityContext: &corev1.SecurityContext{RunAsUser: new(int64(7)), ReadOnlyRootFilesystem: new(true)},
			VolumeMounts: []corev1.VolumeMount{
				{Name: "data", MountPath: "/data", SubPath: "shop"},
				{Name: "conf", MountPath: "/etc/doris/"},
				{Name: "certs", MountPath: "/etc/doris/certs"},
			},
		}},
		Volumes: []corev1.Volume{{Name: "conf", VolumeSource: config}, {Name: "certs"}},
	}
}

var ofBackend = Options{Kind: Backend, Container: "be", ConfDir: "/etc/doris"}

func TestApply(t *testing.T) {
	t.Parallel()
	configMap := corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}
	record := &Record{State: Kept, Volume: "data", MountPath: "/data", SubPath: "shop"}
	got, before := pod(configMap), pod(configMap)
	record.Apply(got, ofBackend)
	main, was := got.Containers[0], before.Containers[0]
	wantMounts := []corev1.VolumeMount{
		{Name: "data", MountPath: "/data", SubPath: "shop"},
		{Name: "certs", MountPath: "/etc/doris/certs"},
		{Name: BaseVolume, MountPath: "/etc/doris"},
		{Name: "data", MountPath: Directory, SubPathExpr: "shop/.doris-runtime-config/$(POD_NAME)"},
	}
	if diff := cmp.Diff(wantMounts, main.VolumeMounts); diff != "" {
		t.Errorf("mounts of the main container (-want +got):\n%s", diff)
	}
	main.VolumeMounts, was.VolumeMounts = nil, nil
	if diff := cmp.Diff(was, main); diff != "" {
		t.Errorf("more of the main container changed than its mounts (-was +is):\n%s", diff)
	}
	if len(got.InitContainers) != 2 || got.InitContainers[0].Name != "users-own" {
		t.Fatalf("the init containers are %v", got.InitContainers)
	}
	prepare := got.InitContainers[1]
	wantMounts = []corev1.VolumeMount{
		{Name: "data", MountPath: volumePath, SubPath: "shop"},
		{Name: BaseVolume, MountPath: basePath},
		{Name: "conf", MountPath: sourcePath, ReadOnly: true},
	}
	if diff := cmp.Diff(wantMounts, prepare.VolumeMounts); diff != "" {
		t.Errorf("mounts of the init container (-want +got):\n%s", diff)
	}
	if prepare.Name != InitName || prepare.Image != main.Image {
		t.Errorf("init container %s of image %s", prepare.Name, prepare.Image)
	}
	if diff := cmp.Diff(main.SecurityContext, prepare.SecurityContext); diff != "" {
		t.Errorf("security context (-main +init):\n%s", diff)
	}
	for _, e := range prepare.Env {
		if e.Name == "SECRET" {
			t.Error("the init container has variables that it does not need")
		}
	}
	base := got.Volumes[len(got.Volumes)-1]
	if base.Name != BaseVolume || base.EmptyDir == nil || base.EmptyDir.Medium != corev1.StorageMediumDefault || len(got.Volumes) != 3 {
		t.Errorf("volumes: %v", got.Volumes)
	}
}

func TestApplyVariants(t *testing.T) {
	t.Parallel()
	record := &Record{State: Kept, Volume: "data", MountPath: "/data"}
	t.Run("what a Secret holds stays in memory", func(t *testing.T) {
		got := pod(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}})
		record.Apply(got, ofBackend)
		if got.Volumes[2].EmptyDir.Medium != corev1.StorageMediumMemory {
			t.Error("it is written to a disk")
		}
	})
	t.Run("nothing mounted: no source", func(t *testing.T) {
		got := pod(corev1.VolumeSource{})
		got.Containers[0].VolumeMounts = got.Containers[0].VolumeMounts[:1]
		record.Apply(got, ofBackend)
		if n := len(got.InitContainers[1].VolumeMounts); n != 2 {
			t.Errorf("%d mounts", n)
		}
	})
	t.Run("a base file that must not be written: mounted so", func(t *testing.T) {
		got := pod(corev1.VolumeSource{})
		fixed := ofBackend
		fixed.Fixed = true
		record.Apply(got, fixed)
		if m := got.Containers[0].VolumeMounts; !m[len(m)-2].ReadOnly || m[len(m)-1].ReadOnly {
			t.Errorf("mounts: %v", m)
		}
	})
	t.Run("meta service: the setting names a file", func(t *testing.T) {
		got := pod(corev1.VolumeSource{})
		record.Apply(got, Options{Kind: Meta, Container: "be", ConfDir: "/etc/doris"})
		env := map[string]string{}
		for _, e := range got.InitContainers[1].Env {
			env[e.Name] = e.Value
		}
		if env["FAIRLEAD_SETTING"] != "custom_conf_path = "+Directory+"/ms_custom.conf" || env["FAIRLEAD_BASE_FILE"] != "doris_cloud.conf" ||
			env["FAIRLEAD_IMAGE_CONF"] != "/opt/apache-doris/ms/conf" {
			t.Errorf("%v", env)
		}
	})
	for _, r := range []*Record{nil, {State: Unavailable}, {State: UserManaged}} {
		got := pod(corev1.VolumeSource{})
		r.Apply(got, ofBackend)
		if diff := cmp.Diff(pod(corev1.VolumeSource{}), got); diff != "" {
			t.Errorf("%v changed the Pod:\n%s", r, diff)
		}
	}
}

// TestFound holds that what was applied is found again, whatever the mounts.
func TestFound(t *testing.T) {
	t.Parallel()
	for _, want := range []*Record{
		nil, {State: Kept, Volume: "data", MountPath: "/data", SubPath: "shop"}, {State: Kept, Volume: "certs", MountPath: "/etc/doris/certs"},
	} {
		got := pod(corev1.VolumeSource{})
		want.Apply(got, ofBackend)
		if diff := cmp.Diff(want, Found(got, "be")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestApplyWhereThePodIsNamedByAnotherVariable(t *testing.T) {
	t.Parallel()
	got := pod(corev1.VolumeSource{})
	got.Containers[0].Env[1] = corev1.EnvVar{Name: envPodName, Value: "all-alike"}
	(&Record{State: Kept, Volume: "data", MountPath: "/data"}).Apply(got, ofBackend)
	main := got.Containers[0]
	if last := main.VolumeMounts[len(main.VolumeMounts)-1].SubPathExpr; last != ".doris-runtime-config/$(FAIRLEAD_POD_NAME)" {
		t.Errorf("the directory is %s", last)
	}
	if diff := cmp.Diff(nameOfPod(ownPodName), main.Env[len(main.Env)-1]); diff != "" {
		t.Error(diff)
	}
}

func TestMountsOf(t *testing.T) {
	t.Parallel()
	p := pod(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ReadOnly: true}})
	got := MountsOf(p, "be", []string{"data"})
	want := []Mount{
		{Volume: "data", Path: "/data", SubPath: "shop", Claim: true},
		{Volume: "conf", Path: "/etc/doris/", Claim: true, ReadOnly: true},
		{Volume: "certs", Path: "/etc/doris/certs"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnnotation(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]*Record{
		"unavailable":  {State: Unavailable},
		"user-managed": {State: UserManaged},
		`{"volume":"d","mountPath":"/data","subPath":"s"}`: {State: Kept, Volume: "d", MountPath: "/data", SubPath: "s"},
		`{"volume":"d","mountPath":"/data"}`:               {State: Kept, Volume: "d", MountPath: "/data"},
	} {
		if got := r.Annotation(); got != want {
			t.Errorf("%+v: %s, want %s", r, got, want)
		}
	}
}
