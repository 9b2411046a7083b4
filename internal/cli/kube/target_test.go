package kube

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOne(t *testing.T) {
	for _, tc := range []struct {
		args  string
		name  string
		rest  []string
		fails string
	}{
		{args: "dcr doris", name: "doris"},
		{args: "DorisCluster doris", name: "doris"},
		{args: "dorisclusters.doris.selectdb.com doris", name: "doris"},
		{args: "dcr/doris", name: "doris"},
		{args: "doris", name: "doris"},
		{args: "dcr doris abc def", name: "doris", rest: []string{"abc", "def"}},
		{args: "dcr/doris abc", name: "doris", rest: []string{"abc"}},
		{args: "", fails: "KIND NAME"},
		{args: "dcr", fails: "give the name too"},
		{args: "pod doris-be-0", fails: `"pod" is no kind`},
		{args: "pod/doris-be-0", fails: `"pod" is no kind`},
		{args: "dcr/", fails: "no name"},
		{args: "dcr a/b", fails: "no name"},
		{args: "dcr/a/b", fails: "no name"},
	} {
		t.Run(tc.args, func(t *testing.T) {
			name, rest, err := One(strings.Fields(tc.args))
			if failed(t, err, tc.fails) {
				return
			}
			if name != tc.name || strings.Join(rest, " ") != strings.Join(tc.rest, " ") {
				t.Errorf("%q, %q", name, rest)
			}
		})
	}
}

func TestNames(t *testing.T) {
	for _, tc := range []struct {
		args  string
		names []string
		all   bool
		fails string
	}{
		{args: "", all: true},
		{args: "dcr", all: true},
		{args: "dcr a", names: []string{"a"}},
		{args: "dcr a b", names: []string{"a", "b"}},
		{args: "dcr/a dcr/b", names: []string{"a", "b"}},
		{args: "a", names: []string{"a"}},
		{args: "a b", fails: `"a" is no kind`},
		{args: "dcr/a b", fails: "not of the form"},
		{args: "dcr a/b", fails: "no name"},
	} {
		t.Run(tc.args, func(t *testing.T) {
			names, all, err := Names(strings.Fields(tc.args))
			if failed(t, err, tc.fails) {
				return
			}
			if diff := cmp.Diff(tc.names, names); diff != "" || all != tc.all {
				t.Errorf("all %t, names (-want +got):\n%s", all, diff)
			}
		})
	}
}

func failed(t *testing.T, err error, want string) bool {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Fatal(err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("error %v, want one that says %q", err, want)
	}
	return want != ""
}
