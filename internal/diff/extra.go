package diff

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// ExtraFields lists the fields that a live Pod template of a StatefulSet has and
// a rendered one has not, once the defaults of the API server are filled into
// the rendered one: what somebody else added. Each is printed as in Field.Path,
// from spec.template on, outermost only and sorted; entries of lists are matched
// by their keys. A field that has another value on both sides is not extra, and
// labels and annotations of the template are left out: they belong to whoever
// set them. Neither template is changed.
func (e *Engine) ExtraFields(rendered, live map[string]any) ([]string, error) {
	q, known := e.memo.askAny("extra", rendered, live)
	if known {
		return nil, nil
	}
	extra, err := e.extraFields(rendered, live)
	if err == nil && len(extra) == 0 {
		e.memo.nothing(q)
	}
	return extra, err
}

func (e *Engine) extraFields(rendered, live map[string]any) ([]string, error) {
	filled := runtime.DeepCopyJSON(rendered)
	FillPodTemplate(filled)
	present := runtime.DeepCopyJSON(live)
	dropNulls(present)
	want, have := inStatefulSet(filled), inStatefulSet(present)
	set, err := e.fieldsOf(have)
	if err != nil {
		return nil, err
	}
	known, err := e.fieldsOf(want)
	if err != nil {
		return nil, err
	}
	var extra []string
	set.Difference(known).Iterate(func(p fieldpath.Path) {
		if missing := firstMissing(want.Object, p); missing != nil && !isTemplateMark(missing) {
			extra = append(extra, printPath(missing))
		}
	})
	slices.Sort(extra)
	return slices.Compact(extra), nil
}

// inStatefulSet puts a Pod template where it has a type.
func inStatefulSet(template map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "StatefulSet", "spec": map[string]any{"template": template},
	}}
}

func (e *Engine) fieldsOf(u *unstructured.Unstructured) (*fieldpath.Set, error) {
	t, err := e.converter.ObjectToTyped(u, typed.AllowDuplicates)
	if err != nil {
		return nil, fmt.Errorf("typing a Pod template: %w", err)
	}
	set, err := t.ToFieldSet()
	if err != nil {
		return nil, fmt.Errorf("listing the fields of a Pod template: %w", err)
	}
	return set, nil
}

// firstMissing returns the shortest part of a path that leads nowhere; nil when
// all of it is there.
func firstMissing(obj any, p fieldpath.Path) fieldpath.Path {
	for n := range p {
		if obj = step(obj, p[n]); obj == nil {
			return p[:n+1].Copy()
		}
	}
	return nil
}

// isTemplateMark tells whether a path is a label or an annotation of a Pod
// template, or all of them.
func isTemplateMark(p fieldpath.Path) bool {
	at := []string{"spec", "template", "metadata"}
	if len(p) < len(at)+1 {
		return false
	}
	for i, name := range at {
		if p[i].FieldName == nil || *p[i].FieldName != name {
			return false
		}
	}
	name := p[len(at)].FieldName
	return name != nil && (*name == "labels" || *name == "annotations")
}
