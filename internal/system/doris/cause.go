package doris

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/diff"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// causeOf attributes the differences between an object that is not a set as it
// is rendered and as it is live:
//
//   - inputs that changed since the object was last applied are an edit of the
//     custom resource, or of a ConfigMap that it names;
//   - with the same inputs, somebody else edited the object.
//
// Where no digest says anything, the owner of the field does: what is in a
// Secret, and everything while the record is missing.
func (p planner) causeOf(rendered, live client.Object) func(path string) plan.Cause {
	switch o := live.(type) {
	case nil:
		return func(string) plan.Cause { return plan.CauseUser }
	case *corev1.Secret, *corev1.ConfigMap:
		return p.causeByOwner(o)
	}
	byOwner := p.causeByOwner(live)
	byInputs, recorded := causeByInputs(rendered, live)
	return func(path string) plan.Cause {
		if !recorded {
			return byOwner(path)
		}
		return byInputs
	}
}

// causeInSet attributes the differences between a set as it is rendered and as it
// is live: what the two renderings differ in was edited by the user or in a
// ConfigMap, what a newer rendering differs in was accepted; anything else was
// edited by somebody else, or found like that in a set of another operator.
func (p planner) causeInSet(w workload) func(path string) plan.Cause {
	if w.live == nil {
		return func(string) plan.Cause { return plan.CauseUser }
	}
	byOwner := p.causeByOwner(w.live)
	return func(path string) plan.Cause {
		switch {
		case path == replicasPath || w.lost:
			return byOwner(path)
		case w.asked(path):
			return plan.CauseUser
		case w.changes && touches(w.edited, path):
			return w.editedCause(path)
		case w.revision == 0:
			return plan.CauseRevision
		}
		return plan.CauseDrift
	}
}

// asked tells whether a field of the set changes because of what the operator
// itself keeps there, or because a person accepted a newer rendering.
func (w workload) asked(path string) bool {
	switch {
	case strings.HasPrefix(path, `metadata.annotations["`+meta.Prefix):
		return true
	case w.revision == 0 && strings.HasPrefix(path, "metadata."): // whom it belongs to, and our labels
		return true
	}
	return w.changes && (diff.Overlap(path, templateStamp) && len(w.secrets.followed) == 0 || touches(w.offered, path))
}

// asFoundService keeps what a Service of another operator had that is not
// rendered: it is remembered when the Service is taken over, and held.
func (p planner) asFoundService(w *plan.Want, live *corev1.Service) {
	var found []string
	if pinnedService(live) {
		found = asFound(live)
	} else {
		fields, err := p.engine.Compare(w.Rendered, live, FieldManager)
		if err != nil {
			return // the builder returns it
		}
		for _, f := range fields {
			if strings.HasPrefix(f.Path, "spec.") {
				found = append(found, f.Path)
			}
		}
	}
	if len(found) == 0 {
		return
	}
	rendered := w.Rendered.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has the same type
	annotations := maps.Clone(rendered.GetAnnotations())
	text, err := json.Marshal(found)
	if err != nil {
		return // strings can be encoded
	}
	annotations[meta.AnnotationAsFound] = string(text)
	rendered.SetAnnotations(annotations)
	w.Rendered = rendered
	otherwise := w.Cause
	if !pinnedService(live) {
		otherwise = func(string) plan.Cause { return plan.CauseUser }
	}
	w.Cause = func(path string) plan.Cause {
		if slices.ContainsFunc(found, func(f string) bool { return diff.Overlap(f, path) }) {
			return plan.CauseRevision
		}
		return otherwise(path)
	}
}

const replicasPath = "spec.replicas"

// causeByInputs compares what an object was rendered from with what it is
// rendered from now. It cannot tell without a record that it can read.
func causeByInputs(rendered, live client.Object) (cause plan.Cause, recorded bool) {
	was, recorded := readDigests(live.GetAnnotations()[meta.AnnotationInputs])
	is, _ := readDigests(rendered.GetAnnotations()[meta.AnnotationInputs])
	switch {
	case was.spec != is.spec:
		return plan.CauseUser, recorded
	case was.config != is.config:
		return plan.CauseConfig, recorded
	}
	return plan.CauseDrift, recorded
}

// causeByOwner tells by the owner of the live value: what we wrote ourselves
// differs because the spec does, what somebody else wrote is their edit. Owners
// are looked up when the first difference is, since most objects have none.
func (p planner) causeByOwner(live client.Object) func(path string) plan.Cause {
	lookup := sync.OnceValues(func() (map[string]any, error) { return p.engine.Owned(live, FieldManager) })
	return func(path string) plan.Cause {
		owned, err := lookup()
		if err != nil || len(owned) == 0 || holds(owned, path) {
			return plan.CauseUser
		}
		return plan.CauseDrift
	}
}

// holds tells whether a tree has the field of a path as changes print it.
func holds(tree any, path string) bool {
	path = strings.TrimPrefix(path, ".")
	if path == "" {
		return tree != nil
	}
	if selector, isSelector := strings.CutPrefix(path, "["); isSelector {
		if quoted, err := strconv.QuotedPrefix(selector); err == nil { // a key of a map
			return below(tree, unquote(quoted), strings.TrimPrefix(selector[len(quoted):], "]"))
		}
		keys, rest, _ := strings.Cut(selector, "]")
		list, _ := tree.([]any)
		return slices.ContainsFunc(list, func(entry any) bool { return selected(entry, keys) && holds(entry, rest) })
	}
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		end = len(path)
	}
	return below(tree, path[:end], path[end:])
}

func below(tree any, name, rest string) bool {
	fields, _ := tree.(map[string]any)
	value, found := fields[name]
	return found && (rest == "" || holds(value, rest))
}

// selected tells whether an entry of a list has the keys, such as
// `port=9030,protocol="TCP"`.
func selected(entry any, keys string) bool {
	fields, _ := entry.(map[string]any)
	for key := range strings.SplitSeq(keys, ",") {
		name, value, _ := strings.Cut(key, "=")
		if fmt.Sprint(fields[name]) != unquote(value) {
			return false
		}
	}
	return true
}

func unquote(value string) string {
	if plain, err := strconv.Unquote(value); err == nil {
		return plain
	}
	return value
}

// edited tells whether a template of a set holds edits of somebody else, or was
// found with fields that we would not render: then a Pod that is not on the newest
// template need not be there for our sake.
func edited(p plan.Plan, set *appsv1.StatefulSet) bool {
	for _, c := range p.Changes {
		if c.Object.Kind != "StatefulSet" || c.Object.Name != set.Name || !plan.InTemplate(c.Path) || c.Path == templateStamp {
			continue
		}
		if c.Cause == plan.CauseDrift || c.Reason == reasonAsFound {
			return true
		}
	}
	return false
}

// reasonAsFound is the reason of changes that would bring what was found to what
// is rendered.
const reasonAsFound = "NeedsConsent"

// pinnedService tells whether a Service was applied by us before.
func pinnedService(s *corev1.Service) bool { return s.Annotations[meta.AnnotationInputs] != "" }

// causeOfRoll tells what the Pods of a set are replaced for, by what they ran on
// before: where the spec is the same, it is their configuration.
func causeOfRoll(set *appsv1.StatefulSet) plan.Cause {
	before, rolling := readLastGood(set)
	now, known := readAccepted(set)
	revision := strconv.Itoa(before.Revision)
	was, is := before.Accepted, now
	switch {
	case !rolling || !known || encoded(was.Spec) != encoded(is.Spec) || was.Restart != is.Restart:
		return plan.CauseUser
	case revision != set.Annotations[meta.AnnotationRevision]:
		return plan.CauseRevision
	case encoded(was) != encoded(is):
		return plan.CauseConfig
	}
	return plan.CauseUser
}
