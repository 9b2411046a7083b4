package doris

import (
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
// Two things are told by who owns the field instead, since no digest says
// anything about them: the number of replicas, and what is in a Secret.
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
		byOwner, byInputs := p.causeByOwner(o), causeByInputs(rendered, o)
		return func(path string) plan.Cause {
			if path == replicasPath {
				return byOwner(path)
			}
			return byInputs
		}
	}
	if live.GetAnnotations()[meta.AnnotationInputs] == "" && !ours(live) {
		return always(plan.CauseUser) // taken over: the spec says how it should be
	}
	return always(causeByInputs(rendered, live))
}

const replicasPath = "spec.replicas"

// causeByInputs compares what an object was rendered from with what it is
// rendered from now. Without a record that can be read, the record itself was
// edited by somebody else.
func causeByInputs(rendered, live client.Object) plan.Cause {
	was, recorded := readDigests(live.GetAnnotations()[meta.AnnotationInputs])
	is, _ := readDigests(rendered.GetAnnotations()[meta.AnnotationInputs])
	switch {
	case !recorded:
		return plan.CauseDrift
	case was.spec != is.spec:
		return plan.CauseUser
	case was.config != is.config:
		return plan.CauseConfig
	}
	return plan.CauseDrift
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

// holds tells whether a tree has the field of a plain path.
func holds(tree map[string]any, path string) bool {
	first, rest, deeper := strings.Cut(path, ".")
	value, found := tree[first]
	if !found || !deeper {
		return found
	}
	below, ok := value.(map[string]any)
	return ok && holds(below, rest)
}

// ours tells whether we have applied an object.
func ours(o client.Object) bool {
	for _, m := range o.GetManagedFields() {
		if m.Manager == FieldManager {
			return true
		}
	}
	return false
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
