package main

import (
	"bytes"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// page renders the reference of one kind.
func page(crd apiextensionsv1.CustomResourceDefinition) ([]byte, error) {
	version, err := storageVersion(crd)
	if err != nil {
		return nil, err
	}
	root := version.Schema.OpenAPIV3Schema
	outline, err := newOutline(*root, "spec", "status")
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "<!-- Generated from the CRD by \"make generate\"; do not edit. -->\n\n# %s\n\n%s\n\n", crd.Spec.Names.Kind, paragraphs(root.Description))
	writeIdentity(&out, crd, version)
	for _, s := range outline.sections {
		writeSection(&out, s)
	}
	return out.Bytes(), nil
}

func storageVersion(crd apiextensionsv1.CustomResourceDefinition) (apiextensionsv1.CustomResourceDefinitionVersion, error) {
	for _, version := range crd.Spec.Versions {
		if version.Storage && version.Schema != nil && version.Schema.OpenAPIV3Schema != nil {
			return version, nil
		}
	}
	return apiextensionsv1.CustomResourceDefinitionVersion{}, fmt.Errorf("%s has no stored version with a schema", crd.Name)
}

// writeIdentity says how the kind is called and what kubectl get shows of it.
func writeIdentity(out *bytes.Buffer, crd apiextensionsv1.CustomResourceDefinition, version apiextensionsv1.CustomResourceDefinitionVersion) {
	fmt.Fprintf(out, "| | |\n|---|---|\n")
	row := func(name, value string) { fmt.Fprintf(out, "| %s | %s |\n", name, value) }
	row("apiVersion", code(crd.Spec.Group+"/"+version.Name))
	row("kind", code(crd.Spec.Names.Kind))
	row("scope", string(crd.Spec.Scope))
	if names := crd.Spec.Names.ShortNames; len(names) > 0 {
		row("short names", code(names...))
	}
	if scale := scaleOf(version); scale != "" {
		row("scale", scale)
	}
	var columns []string
	for _, column := range version.AdditionalPrinterColumns {
		columns = append(columns, fmt.Sprintf("%s (`%s`)", escape(column.Name), escape(column.JSONPath)))
	}
	if len(columns) > 0 {
		row("columns of `kubectl get`", strings.Join(columns, ", "))
	}
	out.WriteString("\n")
}

func scaleOf(version apiextensionsv1.CustomResourceDefinitionVersion) string {
	if version.Subresources == nil || version.Subresources.Scale == nil {
		return ""
	}
	return code(version.Subresources.Scale.SpecReplicasPath)
}

func writeSection(out *bytes.Buffer, s section) {
	level := "##"
	if strings.Contains(s.path, ".") {
		level = "###"
	}
	fmt.Fprintf(out, "<a id=%q></a>\n\n%s %s\n\n", anchor(s.path), level, s.title)
	if s.text != "" {
		fmt.Fprintf(out, "%s\n\n", paragraphs(s.text))
	}
	if len(s.fields) == 0 {
		return
	}
	out.WriteString("| Field | Type | Meaning |\n|---|---|---|\n")
	for _, f := range s.fields {
		fmt.Fprintf(out, "| `%s` | %s | %s |\n", f.name, typeOf(f), meaning(f))
	}
	out.WriteString("\n")
}

// typeOf names the type of a field, with a link to the section that describes it.
func typeOf(f field) string {
	object, suffix := element(f.schema)
	name := scalar(object)
	if f.target != "" {
		name = "[object](#" + anchor(f.target) + ")"
	}
	for suffix != "" {
		if rest, isList := strings.CutPrefix(suffix, "[]"); isList {
			name, suffix = "list of "+name, rest
			continue
		}
		name, suffix = "map to "+name, strings.TrimPrefix(suffix, ".KEY")
	}
	return name
}

func scalar(s apiextensionsv1.JSONSchemaProps) string {
	if name := kubernetesType(s); name != "" {
		return code(name) + " of Kubernetes"
	}
	switch {
	case s.XIntOrString && strings.HasPrefix(s.Pattern, `^(\+|-)?(([0-9]+`):
		return "quantity"
	case s.XIntOrString:
		return "integer or string"
	case s.Format == "date-time":
		return "time"
	case s.Type == "":
		return "any"
	}
	return s.Type
}

// meaning is the description of a field with what the API server enforces.
func meaning(f field) string {
	text := strings.ReplaceAll(paragraphs(f.schema.Description), "\n\n", "<br>")
	if text != "" && !strings.ContainsAny(text[len(text)-1:], ".:;!?") {
		text += "."
	}
	parts := []string{text}
	if f.required {
		parts = append(parts, "Required.")
	}
	if len(f.schema.Enum) > 0 {
		var values []string
		for _, value := range f.schema.Enum {
			values = append(values, code(string(value.Raw)))
		}
		parts = append(parts, "One of "+strings.Join(values, ", ")+".")
	}
	if f.schema.Default != nil {
		parts = append(parts, "Default: "+code(string(f.schema.Default.Raw))+".")
	}
	parts = append(parts, bounds(f.schema)...)
	for _, rule := range f.schema.XValidations {
		text := rule.Message
		if text == "" {
			text = rule.Rule
		}
		parts = append(parts, "Rule: "+escape(text)+".")
	}
	return strings.TrimSpace(strings.Join(parts, " "))
}

func bounds(s apiextensionsv1.JSONSchemaProps) []string {
	var parts []string
	number := func(name string, value *float64) {
		if value != nil {
			parts = append(parts, fmt.Sprintf("%s: %v.", name, *value))
		}
	}
	count := func(name string, value *int64) {
		if value != nil {
			parts = append(parts, fmt.Sprintf("%s: %d.", name, *value))
		}
	}
	number("Minimum", s.Minimum)
	number("Maximum", s.Maximum)
	count("Shortest length", s.MinLength)
	count("Longest length", s.MaxLength)
	count("Entries at least", s.MinItems)
	count("Entries at most", s.MaxItems)
	if s.Pattern != "" && !s.XIntOrString {
		parts = append(parts, "Pattern: "+code(s.Pattern)+".")
	}
	return parts
}

// link points to the section of a path.
func link(path string) string {
	return "[`" + path + "`](#" + anchor(path) + ")"
}

// anchor is a path as an HTML id.
func anchor(path string) string {
	return strings.NewReplacer("{", "", "}", "", ",", "-", ".", "-", "[]", "").Replace(path)
}

// code shows values as they are written.
func code(values ...string) string {
	var shown []string
	for _, value := range values {
		shown = append(shown, "`"+strings.ReplaceAll(value, "|", `\|`)+"`")
	}
	return strings.Join(shown, ", ")
}

// paragraphs unfolds a description: lines of a paragraph are joined.
func paragraphs(text string) string {
	var result []string
	for paragraph := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		result = append(result, escape(strings.Join(strings.Fields(paragraph), " ")))
	}
	return strings.Join(result, "\n\n")
}

// escape keeps text from being read as a table cell's end or as HTML.
func escape(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", ">", "&gt;", "*", `\*`).Replace(text)
}
