package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// minShared is how many fields siblings have to have in common before these are
// described once for all of them.
const minShared = 5

// section describes the fields of one object of the schema.
type section struct {
	path   string // "spec.feSpec.service"; what several share: "spec.{beSpec,feSpec}"
	title  string
	text   string
	fields []field
}

// field is one row of a section's table.
type field struct {
	name     string
	schema   apiextensionsv1.JSONSchemaProps
	required bool
	target   string // path of the section that describes the value, or ""
}

// outline turns the tree of a schema into the flat list of sections that the
// page prints, each object described once: an object that looks like an earlier
// one points to it.
type outline struct {
	sections []section
	seen     map[string]string // schema of an object, as JSON, to the path of its section
}

func newOutline(root apiextensionsv1.JSONSchemaProps, tops ...string) (*outline, error) {
	o := &outline{seen: map[string]string{}}
	for _, top := range tops {
		schema, found := root.Properties[top]
		if !found {
			continue
		}
		if err := o.add(top, schema, nil); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// add appends the section of an object and the sections below it. Fields that a
// section of shared fields describes are left out.
func (o *outline) add(path string, schema apiextensionsv1.JSONSchemaProps, leaveOut map[string]bool) error {
	at := len(o.sections)
	o.sections = append(o.sections, section{path: path, title: "`" + path + "`", text: schema.Description})
	shared, err := o.addShared(path, schema)
	if err != nil {
		return err
	}
	var fields []field
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		if leaveOut[name] {
			continue
		}
		f := field{name: name, schema: schema.Properties[name], required: slices.Contains(schema.Required, name)}
		f.target, err = o.describe(path, f, shared)
		if err != nil {
			return err
		}
		fields = append(fields, f)
	}
	o.sections[at].fields = fields
	return nil
}

// describe makes sure that a section describes the value of a field, and returns
// its path; "" when the row says it all.
func (o *outline) describe(parent string, f field, shared common) (string, error) {
	object, suffix := element(f.schema)
	if len(object.Properties) == 0 || kubernetesType(object) != "" {
		return "", nil
	}
	path := parent + "." + f.name + suffix
	key, err := identity(object)
	if err != nil {
		return "", err
	}
	if earlier, found := o.seen[key]; found {
		return earlier, nil
	}
	o.seen[key] = path
	var leaveOut map[string]bool
	if slices.Contains(shared.siblings, f.name) {
		leaveOut = shared.fields
		object.Description += "\n\nIt also has the fields of " + link(shared.path) + "."
	}
	return path, o.add(path, object, leaveOut)
}

// common says which siblings share which fields.
type common struct {
	path     string
	siblings []string
	fields   map[string]bool
}

// addShared appends a section for the fields that several children of an object
// have in common, if there are enough to make the page shorter.
func (o *outline) addShared(path string, schema apiextensionsv1.JSONSchemaProps) (common, error) {
	siblings, fields, err := largestCommon(schema)
	if err != nil || len(fields) < minShared {
		return common{}, err
	}
	c := common{
		path:     path + ".{" + strings.Join(siblings, ",") + "}",
		siblings: siblings,
		fields:   map[string]bool{},
	}
	object := apiextensionsv1.JSONSchemaProps{
		Description: "The fields that `" + strings.Join(siblings, "`, `") + "` have in common.",
		Properties:  map[string]apiextensionsv1.JSONSchemaProps{},
	}
	for _, name := range fields {
		c.fields[name] = true
		object.Properties[name] = schema.Properties[siblings[0]].Properties[name]
		if slices.Contains(schema.Properties[siblings[0]].Required, name) {
			object.Required = append(object.Required, name)
		}
	}
	return c, o.add(c.path, object, nil)
}

// largestCommon finds the set of object-valued properties that share the most
// identical fields; a field that only some of them require is not identical.
func largestCommon(schema apiextensionsv1.JSONSchemaProps) (siblings, fields []string, err error) {
	having := map[string][]string{} // a field, as name and what is true of it, to the siblings that have it
	for _, child := range slices.Sorted(maps.Keys(schema.Properties)) {
		object := schema.Properties[child]
		if kubernetesType(object) != "" {
			continue
		}
		for name, property := range object.Properties {
			text, err := json.Marshal(property)
			if err != nil {
				return nil, nil, err
			}
			key := fmt.Sprintf("%s\n%t %s", name, slices.Contains(object.Required, name), text)
			having[key] = append(having[key], child)
		}
	}
	groups := map[string][]string{} // siblings, joined, to the fields that exactly they share
	for key, children := range having {
		if len(children) < 2 {
			continue
		}
		name, _, _ := strings.Cut(key, "\n")
		group := strings.Join(children, ",")
		groups[group] = append(groups[group], name)
	}
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		if len(groups[group]) > len(fields) {
			siblings, fields = strings.Split(group, ","), groups[group]
		}
	}
	slices.Sort(fields)
	return siblings, fields, nil
}

// element returns the object inside lists and maps, and how a path shows them.
func element(s apiextensionsv1.JSONSchemaProps) (object apiextensionsv1.JSONSchemaProps, suffix string) {
	switch {
	case s.Items != nil && s.Items.Schema != nil:
		object, suffix = element(*s.Items.Schema)
		return object, "[]" + suffix
	case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		object, suffix = element(*s.AdditionalProperties.Schema)
		return object, ".KEY" + suffix
	}
	return s, ""
}

// identity tells objects with equal fields, whatever they are for.
func identity(s apiextensionsv1.JSONSchemaProps) (string, error) {
	s.Description = ""
	text, err := json.Marshal(s)
	return string(text), err
}
