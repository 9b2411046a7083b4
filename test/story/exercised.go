package story

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/test/cluster/audit"
)

// exercise is a test, by its directory and name, and rights that it has the operator
// use.
type exercise struct {
	test   string
	role   string
	rights []string // VERB,VERB… RESOURCE [NAME]
}

// exercises have each right of the operator once. A right that none of them has is
// given one, or taken from the role.
var exercises = []exercise{
	{"stories/TestALife", roleOperator, []string{
		"get,watch,patch doris.selectdb.com/dorisclusters", "patch doris.selectdb.com/dorisclusters/status",
		"get,watch,create,patch apps/statefulsets", "get,watch,create,patch services", "get,watch,create,patch configmaps",
		"list,delete apps/controllerrevisions", "watch pods", "create pods/eviction", "create events.k8s.io/events",
		"watch persistentvolumeclaims", "watch secrets", "watch autoscaling/horizontalpodautoscalers",
	}},
	{"stories/TestNodesAreDrained", roleOperator, []string{"get,watch,create,patch,delete policy/poddisruptionbudgets"}},
	{"stories/TestComponentsAreMadeAndScaled", roleOperator, []string{
		"get,create,patch,delete autoscaling/horizontalpodautoscalers", "patch doris.selectdb.com/dorisclusters/scale", "get persistentvolumeclaims",
	}},
	{"stories/TestComponentIsTakenAway", roleOperator, []string{"delete services"}},
	{"stories/TestASetIsMadeAgainForItsDisks", roleOperator, []string{"delete apps/statefulsets", "patch persistentvolumeclaims"}},
	{"stories/TestCopiesAreBounded", roleOperator, []string{"delete configmaps"}},
	{"stories/TestNoSecretIsTold", roleOperator, []string{"get,create,patch secrets"}},
	{"stories/TestMemoryIsRaisedInPlace", roleOperator, []string{"patch pods", "patch pods/resize"}},
	{"stories/TestNoFightWithASecondManager", roleOperator, []string{"patch events.k8s.io/events"}},
	{"stories/TestAnotherOperatorIsAtWork", roleOperator, []string{"watch coordination.k8s.io/leases e1370669.selectdb.com"}},
	{"stories/TestListsInsteadOfStreams", roleOperator, []string{
		"list doris.selectdb.com/dorisclusters", "list apps/statefulsets", "list services", "list autoscaling/horizontalpodautoscalers",
		"list policy/poddisruptionbudgets", "list configmaps", "list secrets", "list pods", "list persistentvolumeclaims",
		"list coordination.k8s.io/leases e1370669.selectdb.com",
	}},
	{"stories/TestOtherNamespacesAreLeftAlone", roleLeader, []string{
		"get,update coordination.k8s.io/leases fairlead", "create coordination.k8s.io/leases", "create events",
	}},
	{"chart/live/TestOperatorTellsOfItself", roleLeader, []string{
		"create,patch configmaps fairlead-operator", "create,patch events.k8s.io/events",
	}},
}

// CheckExercised holds that the requests of an installation, made while the test ran,
// used every right that the table has the test for.
func CheckExercised(root, test string, u Using, requests []audit.Entry) error {
	wanted := exercisedBy(test)
	if len(wanted) == 0 {
		return nil
	}
	rights, err := Granted(root)
	if err != nil {
		return err
	}
	used := u.Used(rights, requests)
	wanted = slices.DeleteFunc(wanted, func(right string) bool { return slices.Contains(used, right) })
	if len(wanted) > 0 {
		return fmt.Errorf("%s is to show that the operator uses these rights, and it does not: %q (used are %q)", test, wanted, used)
	}
	return nil
}

// exercisedBy are the rights that the table has a test for, or those of all tests
// where none is named, as Right writes them.
func exercisedBy(test string) []string {
	var out []string
	for _, e := range exercises {
		if test != "" && e.test != test {
			continue
		}
		for _, text := range e.rights {
			out = append(out, e.spread(text)...)
		}
	}
	return out
}

func (e exercise) spread(text string) []string {
	verbs, what, _ := strings.Cut(text, " ")
	var out []string
	for verb := range strings.SplitSeq(verbs, ",") {
		out = append(out, e.role+": "+verb+" "+what)
	}
	return out
}
