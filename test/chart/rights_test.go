package chart

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fairlead-dev/fairlead/test/story"
)

// grants says what an account may do where: "NAMESPACE: VERB GROUP/RESOURCE NAME",
// with * for all namespaces.
func grants(t *testing.T, objects []*unstructured.Unstructured, account, namespace string) []string {
	t.Helper()
	rules := map[string][]rbacv1.PolicyRule{}
	var bindings []rbacv1.RoleBinding
	for _, o := range objects {
		switch o.GetKind() {
		case "Role", "ClusterRole":
			role := convert[rbacv1.Role](t, o)
			rules[o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName()] = role.Rules
		case "RoleBinding", "ClusterRoleBinding":
			bindings = append(bindings, convert[rbacv1.RoleBinding](t, o))
		}
	}
	var out []string
	for _, b := range bindings {
		bound := slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool {
			return s.Kind == "ServiceAccount" && s.Name == account && s.Namespace == namespace
		})
		if !bound || len(b.Subjects) != 1 {
			t.Errorf("%s %s binds %v, not %s/%s alone", b.Kind, b.Name, b.Subjects, namespace, account)
		}
		where, key := b.Namespace, b.RoleRef.Kind+" "+b.Namespace+"/"+b.RoleRef.Name
		if b.Kind == "ClusterRoleBinding" {
			where, key = "*", b.RoleRef.Kind+" /"+b.RoleRef.Name
		}
		granted, ok := rules[key]
		if !ok {
			t.Errorf("%s %s refers to %s, which is not there", b.Kind, b.Name, key)
		}
		for _, r := range granted {
			for _, right := range story.Spread(where, r) {
				name := right.Name
				if name == "" {
					name = "any"
				}
				out = append(out, fmt.Sprintf("%s: %s %s/%s %s", where, right.Verb, right.Group, right.Resource, name))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func convert[T any](t *testing.T, o *unstructured.Unstructured) T {
	t.Helper()
	var out T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// installManifest are the objects of config/rbac.
func installManifest(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	paths, err := filepath.Glob(root + "/config/rbac/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	var out []*unstructured.Unstructured
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		objects, err := documents(string(text))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, objects...)
	}
	return out
}

// moved is what the install manifest grants, with what it grants everywhere
// granted in the namespaces instead, but for the lease of another operator.
func moved(all []string, namespaces []string, rival bool) []string {
	const everywhere = "*: "
	var out []string
	for _, g := range all {
		switch {
		case g[:3] != everywhere:
			out = append(out, g)
		case isRival(g):
			if rival {
				out = append(out, g)
			}
		default:
			for _, n := range namespaces {
				out = append(out, n+": "+g[3:])
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func isRival(grant string) bool {
	return grant == "*: list coordination.k8s.io/leases e1370669.selectdb.com" || grant == "*: watch coordination.k8s.io/leases e1370669.selectdb.com"
}

// The chart grants exactly what the install manifest does: everywhere, or in each
// namespace and nowhere else.
func TestTheChartGrantsWhatTheInstallManifestGrants(t *testing.T) {
	t.Parallel()
	want := grants(t, installManifest(t), "fairlead", "fairlead-system")
	if len(want) < 30 || !slices.ContainsFunc(want, isRival) {
		t.Fatalf("the install manifest grants %d things", len(want))
	}
	tests := map[string]struct {
		values string
		want   []string
	}{
		"the whole cluster":                                 {"{}", want},
		"two namespaces and the lease":                      {"watchNamespaces: [a, b]", moved(want, []string{"a", "b"}, true)},
		"two namespaces and nothing else":                   {"watchNamespaces: [a, b]\nrbac: {clusterScoped: false}", moved(want, []string{"a", "b"}, false)},
		"its own namespace":                                 {"watchNamespaces: [fairlead-system]", moved(want, []string{"fairlead-system"}, true)},
		"without the roles for people, the same for itself": {"rbac: {aggregateToUserRoles: false}", want},
		"none": {"rbac: {create: false}", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, grants(t, rendered(t, test.values).objects, "fairlead", "fairlead-system")); diff != "" {
				t.Errorf("-install manifest +chart:\n%s", diff)
			}
		})
	}
}

// A lease is granted by its name, and asked for by that name; and so is what the
// leader tells of itself. A release may be named as the chart's other objects are.
func TestLeaseIsGrantedByItsName(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ release, values, account, lease string }{
		{"blue", "{}", "blue-fairlead", "blue-fairlead"},
		{"fairlead-operator", "{}", "fairlead-operator", "fairlead-operator"},
		{"blue", "leaderElection: {leaseName: fairlead-operator}", "blue-fairlead", "fairlead-operator"},
		{"blue", "leaderElection: {leaseName: '2026'}", "blue-fairlead", "2026"},
		{"fairlead", "leaderElection: {leaseName: own.fairlead}", "fairlead", "own.fairlead"},
	} {
		r, err := render(t, load(t), tc.values, install(tc.release, "ops"))
		if err != nil {
			t.Fatal(err)
		}
		var named []string
		for _, g := range grants(t, r.objects, tc.account, "ops") {
			if strings.HasPrefix(g, "ops: ") && !strings.HasSuffix(g, " any") {
				named = append(named, g)
			}
		}
		want := []string{
			"ops: create /configmaps " + tc.lease + "-operator", "ops: get coordination.k8s.io/leases " + tc.lease,
			"ops: patch /configmaps " + tc.lease + "-operator", "ops: update coordination.k8s.io/leases " + tc.lease,
		}
		if diff := cmp.Diff(want, named); diff != "" {
			t.Errorf("release %s, %s (-want +got):\n%s", tc.release, tc.values, diff)
		}
		args := operatorContainer(t, r).Args
		if !slices.Contains(args, "--leader-elect-name="+tc.lease) || !slices.Contains(args, "--leader-elect-namespace=ops") {
			t.Errorf("arguments are %v", args)
		}
	}
}

// What people may do is as in the install manifest, and aggregated as there.
func TestRolesForPeople(t *testing.T) {
	t.Parallel()
	want := map[string]*unstructured.Unstructured{}
	for _, o := range installManifest(t) {
		want[o.GetName()] = o
	}
	r := rendered(t, "{}")
	for _, name := range []string{"view", "edit"} {
		got := r.find("ClusterRole", "fairlead-system-fairlead-"+name)
		if got == nil {
			t.Fatalf("no role %s", name)
		}
		if diff := cmp.Diff(want["fairlead-"+name].Object["rules"], got.Object["rules"]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		for key, value := range want["fairlead-"+name].GetLabels() {
			if key != "app.kubernetes.io/name" && got.GetLabels()[key] != value {
				t.Errorf("%s lacks label %s=%s", name, key, value)
			}
		}
	}
	for _, values := range []string{"rbac: {aggregateToUserRoles: false}", "watchNamespaces: [a]\nrbac: {clusterScoped: false}"} {
		for _, o := range rendered(t, values).objects {
			if o.GetKind() == "ClusterRole" && o.GetName() != "fairlead-operator" {
				t.Errorf("%s: there is a ClusterRole %s", values, o.GetName())
			}
		}
	}
}

// An installer without cluster rights gets nothing that lies outside of namespaces.
func TestNamespacedInstallWithoutClusterRightsStaysInNamespaces(t *testing.T) {
	t.Parallel()
	r := rendered(t, "watchNamespaces: [a, b]\nrbac: {clusterScoped: false}\ncrds: {install: false}")
	for _, o := range r.objects {
		if o.GetNamespace() == "" {
			t.Errorf("%s %s is outside of namespaces", o.GetKind(), o.GetName())
		}
	}
}
