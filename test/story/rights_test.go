package story

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/test/cluster/audit"
)

const root = "../../"

// Each right of the operator has one test that shows it used, and nothing else has.
func TestEachRightIsExercised(t *testing.T) {
	rights, err := Granted(root)
	if err != nil {
		t.Fatal(err)
	}
	var granted []string
	for _, r := range rights {
		granted = append(granted, r.String())
	}
	exercised := exercisedBy("")
	slices.Sort(granted)
	slices.Sort(exercised)
	if diff := cmp.Diff(granted, exercised); diff != "" {
		t.Errorf("-granted by config/rbac +in the table of exercises:\n%s", diff)
	}
}

func TestExercisesAreThere(t *testing.T) {
	found := map[string][]string{} // tests by directory
	for _, e := range exercises {
		dir, name := filepath.Split(e.test)
		if found[dir] == nil {
			found[dir] = testsOf(t, filepath.Join(root, "test", dir))
		}
		if !slices.Contains(found[dir], name) {
			t.Errorf("there is no test %s", e.test)
		}
	}
}

func testsOf(t *testing.T, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil || len(paths) == 0 {
		t.Fatal(dir, err)
	}
	var out []string
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
				out = append(out, f.Name.Name)
			}
		}
	}
	return out
}

// Which request shows a right used, and which does not.
func TestRightsThatRequestsNeed(t *testing.T) {
	const account = "system:serviceaccount:ops:blue"
	u := Using{Account: account, Own: "ops", Works: []string{"shop"}, Lease: "blue"}
	rights := []Right{
		{Role: roleOperator, Verb: "patch", Group: "apps", Resource: "statefulsets"},
		{Role: roleOperator, Verb: "create", Group: "apps", Resource: "statefulsets"},
		{Role: roleOperator, Verb: "create", Resource: "pods/eviction"},
		{Role: roleOperator, Verb: "watch", Group: "coordination.k8s.io", Resource: "leases", Name: "rival"},
		{Role: roleLeader, Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Name: "fairlead"},
		{Role: roleLeader, Verb: "patch", Resource: "configmaps", Name: "fairlead-operator"},
	}
	set := audit.Entry{User: account, Verb: "patch", Group: "apps", Resource: "statefulsets", Namespace: "shop", Name: "x", Code: 200}
	change := func(e audit.Entry, do func(*audit.Entry)) audit.Entry { do(&e); return e }
	for name, test := range map[string]struct {
		request audit.Entry
		want    []string
	}{
		"an apply that changes":            {set, []string{"operator: patch apps/statefulsets"}},
		"an apply that makes":              {change(set, func(e *audit.Entry) { e.Code = 201 }), []string{"operator: create apps/statefulsets", "operator: patch apps/statefulsets"}},
		"an apply that is refused":         {change(set, func(e *audit.Entry) { e.Code = 403 }), nil},
		"of somebody else":                 {change(set, func(e *audit.Entry) { e.User = "admin" }), nil},
		"in another namespace":             {change(set, func(e *audit.Entry) { e.Namespace = "lab" }), nil},
		"of a subresource":                 {change(set, func(e *audit.Entry) { e.Subresource = "status" }), nil},
		"an eviction":                      {audit.Entry{User: account, Verb: "create", Resource: "pods", Subresource: "eviction", Namespace: "shop", Code: 201}, []string{"operator: create pods/eviction"}},
		"a lease that is named, anywhere":  {audit.Entry{User: account, Verb: "watch", Group: "coordination.k8s.io", Resource: "leases", Name: "rival", Code: 200}, []string{"operator: watch coordination.k8s.io/leases rival"}},
		"a lease of its own":               {audit.Entry{User: account, Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Name: "blue", Namespace: "ops", Code: 200}, []string{"leader-election: update coordination.k8s.io/leases fairlead"}},
		"a lease of another installation":  {audit.Entry{User: account, Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Name: "fairlead", Namespace: "ops", Code: 200}, nil},
		"what it tells of itself":          {audit.Entry{User: account, Verb: "patch", Resource: "configmaps", Name: "blue-operator", Namespace: "ops", Code: 200}, []string{"leader-election: patch configmaps fairlead-operator"}},
		"a ConfigMap of another namespace": {audit.Entry{User: account, Verb: "patch", Resource: "configmaps", Name: "blue-operator", Namespace: "shop", Code: 200}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, u.Used(rights, []audit.Entry{test.request})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// A test that does not do what the table says of it is found out.
func TestAnExerciseThatDoesNothingIsFoundOut(t *testing.T) {
	u := Using{Account: "a", Own: "o", Works: []string{"w"}, Lease: "fairlead"}
	used := audit.Entry{User: "a", Verb: "delete", Resource: "services", Namespace: "w", Code: 200}
	if err := CheckExercised(root, "stories/TestComponentIsTakenAway", u, []audit.Entry{used}); err != nil {
		t.Error(err)
	}
	err := CheckExercised(root, "stories/TestComponentIsTakenAway", u, nil)
	if err == nil || !strings.Contains(err.Error(), `"operator: delete services"`) {
		t.Errorf("got %v", err)
	}
	if err := CheckExercised(root, "stories/TestThatIsNotInTheTable", u, nil); err != nil {
		t.Error(err)
	}
}
