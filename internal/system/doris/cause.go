package doris

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// causeOf attributes the differences between an object as it is rendered and as
// it is live:
//
//   - a StatefulSet that we did not render, or with another revision of the
//     rendering, differs because we render differently;
//   - inputs that changed since the object was last applied are an edit of the
//     custom resource, or of a ConfigMap that it names;
//   - with the same inputs, somebody else edited the object.
//
// Where no digest says anything, the owner of the field does: the number of
// replicas, what is in a Secret, and everything while the record is missing.
func (p planner) causeOf(rendered, live client.Object) func(path string) plan.Cause {
	always := func(c plan.Cause) func(string) plan.Cause { return func(string) plan.Cause { return c } }
	switch o := live.(type) {
	case nil:
		return always(plan.CauseUser)
	case *corev1.Secret, *corev1.ConfigMap:
		return p.causeByOwner(o)
	case *appsv1.StatefulSet:
		if o.Annotations[meta.AnnotationRevision] != rendered.GetAnnotations()[meta.AnnotationRevision] {
			return always(plan.CauseRevision)
		}
	}
	byOwner := p.causeByOwner(live)
	byInputs, recorded := causeByInputs(rendered, live)
	return func(path string) plan.Cause {
		if !recorded || path == replicasPath {
			return byOwner(path)
		}
		return byInputs
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
// differs because the spec does, what somebody else wrote is their edit.
func (p planner) causeByOwner(live client.Object) func(path string) plan.Cause {
	owned, err := p.engine.Owned(live, FieldManager)
	return func(path string) plan.Cause {
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

// drifted tells whether somebody else edited the Pod template of a set in a
// field that we own. Its Pods are left alone then: to replace them would carry
// out the edit, and nobody asked us to.
func drifted(p plan.Plan, set *appsv1.StatefulSet) bool {
	for _, c := range p.Changes {
		if c.Object.Kind == "StatefulSet" && c.Object.Name == set.Name && c.Cause == plan.CauseDrift && c.Verdict == plan.VerdictHold {
			return true
		}
	}
	return false
}
