package build

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestMergeEnv(t *testing.T) {
	env := func(pairs ...string) []corev1.EnvVar {
		vars := []corev1.EnvVar{}
		for i := 0; i < len(pairs); i += 2 {
			vars = append(vars, corev1.EnvVar{Name: pairs[i], Value: pairs[i+1]})
		}
		return vars
	}
	tests := map[string]struct{ ours, users, want []corev1.EnvVar }{
		"ours come first, in order":            {env("A", "1", "B", "2"), env("C", "3"), env("A", "1", "B", "2", "C", "3")},
		"the user wins and the name is unique": {env("A", "1", "B", "2"), env("A", "9"), env("B", "2", "A", "9")},
		"of two user values the last counts":   {env("A", "1"), env("C", "3", "D", "4", "C", "5"), env("A", "1", "D", "4", "C", "5")},
		"nothing stays nothing":                {nil, nil, env()},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, MergeEnv(test.ours, test.users)); diff != "" {
				t.Errorf("env (-want +got):\n%s", diff)
			}
		})
	}
}

func configMap(name, path string) Volume {
	return Volume{
		Name: name, Kind: "ConfigMap", Of: name, Path: path, Field: "field of " + path,
		Source: &corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}},
	}
}

func TestVolumes(t *testing.T) {
	t.Run("a legal name is kept", func(t *testing.T) {
		v := add(t, configMap("fe-conf", "/etc/doris"))
		if got := v.Volumes()[0].Name; got != "fe-conf" {
			t.Errorf("name = %q", got)
		}
	})
	t.Run("a name with dots gets a stable legal one", func(t *testing.T) {
		a := add(t, configMap("fe.conf", "/a")).Volumes()[0].Name
		b := add(t, configMap("other", "/b"), configMap("fe.conf", "/a")).Volumes()[1].Name
		if a != b || strings.Contains(a, ".") {
			t.Errorf("names %q and %q: want one legal name", a, b)
		}
	})
	t.Run("a name of more than 63 characters gets a short one", func(t *testing.T) {
		if got := add(t, configMap(strings.Repeat("x", 64), "/a")).Volumes()[0].Name; len(got) > 63 {
			t.Errorf("name %q is too long", got)
		}
	})
	t.Run("one object on two paths is one volume", func(t *testing.T) {
		v := add(t, configMap("c", "/a"), configMap("c", "/b"))
		if len(v.Volumes()) != 1 || len(v.Mounts()) != 2 {
			t.Errorf("%d volumes, %d mounts; want 1 and 2", len(v.Volumes()), len(v.Mounts()))
		}
	})
	t.Run("two objects of one name are two volumes", func(t *testing.T) {
		secret := configMap("c", "/b")
		secret.Kind = "Secret"
		v := add(t, configMap("c", "/a"), secret)
		if a, b := v.Volumes()[0].Name, v.Volumes()[1].Name; a == b {
			t.Errorf("both volumes are called %q", a)
		}
	})
	t.Run("a second mount on one path is refused and names the first", func(t *testing.T) {
		v := add(t, configMap("a", "/etc/doris"))
		err := v.Add(configMap("b", "/etc/doris/"))
		var conflict *PathConflictError
		if !errors.As(err, &conflict) || conflict.Other != "field of /etc/doris" {
			t.Errorf("error = %v", err)
		}
		if len(v.Volumes()) != 1 || len(v.Mounts()) != 1 {
			t.Error("the refused volume was added")
		}
	})
	t.Run("a claim template keeps its name or is refused", func(t *testing.T) {
		claim := Volume{Name: "data", Kind: "Claim", Of: "data", Path: "/data"}
		v := add(t, claim)
		if len(v.Volumes()) != 0 || v.Mounts()[0].Name != "data" {
			t.Errorf("volumes %v, mounts %v", v.Volumes(), v.Mounts())
		}
		claim.Of, claim.Path = "other", "/other"
		if err := v.Add(claim); err == nil {
			t.Error("a taken claim name was accepted")
		}
	})
}

func add(t *testing.T, volumes ...Volume) *Volumes {
	t.Helper()
	v := NewVolumes()
	for _, w := range volumes {
		if err := v.Add(w); err != nil {
			t.Fatal(err)
		}
	}
	return v
}

func TestCovering(t *testing.T) {
	v := add(t, configMap("a", "/data"), configMap("b", "/data/meta"), configMap("c", "/database"))
	for at, want := range map[string]string{
		"/data": "/data", "/data/x": "/data", "/data/meta/": "/data/meta", "/data/metadata": "/data", "/": "", "/dat": "",
	} {
		if got, _ := v.Covering(at); got.MountPath != want {
			t.Errorf("Covering(%s) = %q, want %q", at, got.MountPath, want)
		}
	}
}
