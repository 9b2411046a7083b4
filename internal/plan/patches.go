package plan

import (
	"maps"
	"slices"
)

// add adds a step. A patch is refused when the object is of another version than the
// observed one, which is what any write before it in the same plan makes of it: such a
// patch joins one that comes right before it, and otherwise follows in the next plan,
// when what was written is seen.
func (b *Builder) add(s Step) {
	patch, is := s.(Patch)
	if !is {
		b.plan.Steps = append(b.plan.Steps, s)
		return
	}
	at := b.lastWrite(patch.Target())
	if at < 0 {
		b.plan.Steps = append(b.plan.Steps, s)
		return
	}
	if first, is := b.plan.Steps[at].(Patch); is && first.joins(patch) && b.onlyPatchesAfter(at) {
		first.Fields = merged(first.Fields, patch.Fields)
		first.Reason += "; " + patch.Reason
		b.plan.Steps[at] = first
	}
}

// lastWrite is the last step that makes another version of an object, and -1 without.
func (b *Builder) lastWrite(ref Ref) int {
	for i, s := range slices.Backward(b.plan.Steps) {
		switch s.(type) {
		case Patch, Apply, Adopt, Disown:
			if s.Target() == ref {
				return i
			}
		}
	}
	return -1
}

// onlyPatchesAfter tells whether what is said after a step may as well be said in it.
func (b *Builder) onlyPatchesAfter(at int) bool {
	return !slices.ContainsFunc(b.plan.Steps[at+1:], func(s Step) bool { _, patches := s.(Patch); return !patches })
}

func (p Patch) joins(o Patch) bool {
	return p.Subresource == o.Subresource && p.Manager == o.Manager && p.Object.GetResourceVersion() == o.Object.GetResourceVersion()
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
