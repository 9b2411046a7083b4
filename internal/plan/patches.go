package plan

import (
	"maps"
	"slices"
)

// add adds a step. A patch is refused when the object is of another version than the
// observed one, which is what any write before it makes of it: one that follows right
// after another of the same object joins it.
func (b *Builder) add(s Step) {
	if last := len(b.plan.Steps) - 1; last >= 0 {
		first, is := b.plan.Steps[last].(Patch)
		if then, too := s.(Patch); is && too && first.joins(then) {
			first.Fields = merged(first.Fields, then.Fields)
			first.Reason += "; " + then.Reason
			b.plan.Steps[last] = first
			return
		}
	}
	b.plan.Steps = append(b.plan.Steps, s)
}

func (p Patch) joins(o Patch) bool {
	return p.Target() == o.Target() && p.Subresource == o.Subresource && p.Manager == o.Manager && p.Object.GetResourceVersion() == o.Object.GetResourceVersion()
}

// writes tells whether the plan patches an object already.
func (b *Builder) writes(ref Ref) bool {
	return slices.ContainsFunc(b.plan.Steps, func(s Step) bool { _, patches := s.(Patch); return patches && s.Target() == ref })
}

// merged is a merge patch that does what both do.
func merged(first, then map[string]any) map[string]any {
	out := maps.Clone(first)
	for key, value := range then {
		inner, is := value.(map[string]any)
		if has, also := out[key].(map[string]any); is && also {
			out[key] = merged(has, inner)
			continue
		}
		out[key] = value
	}
	return out
}
