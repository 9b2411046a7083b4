package doris

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
)

// stuck says which backends leave and were not seen to hold less for as long as the
// progress deadline is; nothing, if none. A backend that the database decommissions and
// cannot empty leaves for ever, and does not say why.
func (p planner) stuck(s *scaling) string {
	var out []string
	for _, l := range s.leavers {
		if l.gone() || l.row == nil || !l.row.Decommissioned || drained(l.row) {
			continue
		}
		moved := leavingBefore(StatusOf(p.dc, s.kind), l.name).LastMoved
		if moved != nil && p.now.Sub(moved.Time) >= deadlineOf(p.dc, s.kind) {
			out = append(out, stillThere(l))
		}
	}
	if len(out) == 0 {
		return ""
	}
	return fmt.Sprintf("no tablet has left %s for %s: Doris moves none while a table asks for more copies than there are backends that stay,"+
		" while their disks are full, or while balancing is off. Mend that, or put %s.replicas back to %d",
		strings.Join(out, ", "), deadlineOf(p.dc, s.kind), fieldOf(s.kind), s.has)
}

// leavingBefore is what was reported of a member that leaves.
func leavingBefore(before *dorisv1.ComponentStatus, name string) dorisv1.LeavingInstance {
	if before != nil {
		for _, l := range before.LeavingInstances {
			if l.Name == name {
				return l
			}
		}
	}
	return dorisv1.LeavingInstance{}
}

// lastMoved is when a member that leaves was last seen to hold less.
func (p planner) lastMoved(was, is dorisv1.LeavingInstance) *metav1.Time {
	if is.Tablets == nil {
		return was.LastMoved
	}
	if was.LastMoved == nil || was.Tablets != nil && *is.Tablets < *was.Tablets {
		return new(p.since())
	}
	return was.LastMoved
}
