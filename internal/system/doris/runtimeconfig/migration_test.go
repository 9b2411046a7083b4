package runtimeconfig

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func approval() Approval {
	return Approval{Version: 1, ID: "0123456789abcdef", Cluster: "uid", Generation: 4, Components: map[Kind]Copied{
		Frontend: {UID: "fe-uid", Generation: 2, Replicas: 3, Volume: "meta", MountPath: "/meta"},
		Backend:  {UID: "be-uid", Generation: 5, Replicas: 1, Volume: "data", MountPath: "/data", SubPath: "a/b"},
	}}
}

func TestApprovalIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	text := approval().String()
	got, err := ReadApproval(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(approval(), got); diff != "" {
		t.Errorf("(-written +read):\n%s", diff)
	}
	if len(text) > 1000 {
		t.Errorf("it has %d bytes: %s", len(text), text)
	}
	if got.Migrated(Frontend) != "0123456789abcdef:3" || got.Migrated(Meta) != "" {
		t.Errorf("records: %q, %q", got.Migrated(Frontend), got.Migrated(Meta))
	}
}

func FuzzReadApproval(f *testing.F) {
	for _, text := range []string{approval().String(), "", "{}", "null", `{"v":1,"id":"00000000","components":{"be":{"replicas":-1}}}`, `{"v":1,"id":"../../etc"}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := ReadApproval(text)
		if err != nil {
			return
		}
		// What it says becomes a variable of a script and part of the name of a file.
		for kind := range a.Components {
			if m := a.Migrated(kind); strings.ContainsAny(m, "/$`\"' \n\\.") || strings.Count(m, ":") != 1 {
				t.Errorf("%q becomes %q", text, m)
			}
		}
		again, err := ReadApproval(a.String())
		if err != nil {
			t.Fatalf("%q is not read again: %v", text, err)
		}
		if again.String() != a.String() {
			t.Errorf("%q becomes %q", a.String(), again.String())
		}
	})
}

// TestPlace says where the settings of a component that runs can be copied to.
func TestPlace(t *testing.T) {
	t.Parallel()
	data := Mount{Volume: "data", Path: "/opt/apache-doris/be/storage", Claim: true}
	tests := map[string]struct {
		c           Component
		volume, why string
	}{
		"a claim with data":                 {Component{Mounts: []Mount{data}}, "data", ""},
		"none":                              {Component{}, "", "no volume holds the data"},
		"an emptyDir":                       {Component{Mounts: []Mount{{Volume: "data", Path: data.Path}}}, "", "goes with the Pod"},
		"a path of its own":                 {Component{Mounts: []Mount{data}, Custom: "/data/mine"}, "", "by hand"},
		"a path of its own, ours":           {Component{Mounts: []Mount{data}, Custom: Directory}, "", "by hand"},
		"the path of the image, written":    {Component{Mounts: []Mount{data}, Custom: "/opt/apache-doris/be/conf/"}, "data", ""},
		"a volume where they would be seen": {Component{Mounts: []Mount{data, {Volume: "x", Path: Directory}}}, "", "mount it elsewhere"},
		"a cache in the data":               {Component{Mounts: []Mount{data}, Caches: []string{data.Path + "/cache"}}, "", "cleared as a whole"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := test.c
			c.Kind, c.Name, c.Field, c.Default, c.DataDirs = Backend, "be", "spec.beSpec", "/opt/apache-doris/be/conf", []string{data.Path}
			record, findings := c.Place()
			if test.why == "" {
				if record == nil || record.Volume != test.volume || len(findings) > 0 {
					t.Errorf("%+v, %v", record, findings)
				}
				return
			}
			if record != nil || len(findings) != 1 || !strings.Contains(findings[0].String(), test.why) {
				t.Errorf("%+v, %v; want %q", record, findings, test.why)
			}
		})
	}
}
