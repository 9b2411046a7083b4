package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// What a file of this version says of itself.
const (
	APIVersion = "config.fairlead.dev/v1alpha1"
	Kind       = "OperatorConfiguration"
)

// File is a configuration file that was read without complaint.
type File struct {
	settings Settings
	lines    map[string]int // by key: what the file sets, and where
	// namespaces are the options of resources that it sets for a namespace, as text,
	// by namespace and key.
	namespaces map[string]map[string]string
}

// PerNamespace is the key of what a file says for namespaces.
const PerNamespace = "perNamespace"

// Sets reports whether the file sets the option.
func (f *File) Sets(o Option) bool {
	if f == nil {
		return false
	}
	_, ok := f.lines[o.Key()]
	return ok
}

// Parse reads a file strictly: what it does not know, it refuses. The error has
// a line for every fault, with the line of the file and what to write instead.
func Parse(name string, content []byte, table []Option) (*File, error) {
	root, err := document(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	p := parser{name: name, table: table, file: &File{lines: map[string]int{}, namespaces: map[string]map[string]string{}}, seen: map[string]int{}}
	for i := 0; i+1 < len(root.Content); i += 2 {
		p.entry(root.Content[i], root.Content[i+1])
	}
	p.need("apiVersion", APIVersion)
	p.need("kind", Kind)
	if len(p.faults) > 0 {
		slices.SortStableFunc(p.faults, func(a, b fault) int {
			if a.line != b.line {
				return a.line - b.line
			}
			return strings.Compare(a.text, b.text)
		})
		errs := make([]error, len(p.faults))
		for i, f := range p.faults {
			errs[i] = fmt.Errorf("%s:%d: %s", name, f.line, f.text)
		}
		return nil, errors.Join(errs...)
	}
	return p.file, nil
}

// document is the one mapping that the content holds.
func document(content []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	var doc, more yaml.Node
	if err := decoder.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("is empty; write at least apiVersion: %s and kind: %s", APIVersion, Kind)
		}
		return nil, err
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, errors.New("has more than one document, or text after it that is no YAML")
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("is no mapping of options to values")
	}
	return doc.Content[0], nil
}

type fault struct {
	line int
	text string
}

type parser struct {
	name   string
	table  []Option
	file   *File
	seen   map[string]int
	faults []fault
}

func (p *parser) complainf(line int, format string, args ...any) {
	p.faults = append(p.faults, fault{line, fmt.Sprintf(format, args...)})
}

// need complains where the file does not say what it is.
func (p *parser) need(key, want string) {
	if p.seen[key] == 0 {
		p.complainf(1, "%s is missing; write %s: %s", key, key, want)
	}
}

func (p *parser) entry(key, value *yaml.Node) {
	if first := p.seen[key.Value]; first > 0 {
		p.complainf(key.Line, "%s is set twice, first in line %d", key.Value, first)
		return
	}
	p.seen[key.Value] = key.Line
	switch key.Value {
	case "apiVersion":
		p.expect(key, value, APIVersion)
		return
	case "kind":
		p.expect(key, value, Kind)
		return
	case PerNamespace:
		p.perNamespace(value)
		return
	}
	i := slices.IndexFunc(p.table, func(o Option) bool { return o.Key() == key.Value })
	if i < 0 {
		p.complainf(key.Line, "unknown option %q%s", key.Value, suggest(p.table, key.Value))
		return
	}
	if p.set(p.table[i], &p.file.settings, value) {
		p.file.lines[key.Value] = key.Line
	}
}

// set reads the value of an option, and tells whether it may be that.
func (p *parser) set(o Option, to *Settings, value *yaml.Node) bool {
	field := o.field(to)
	if err := setNode(field, value); err != nil {
		p.complainf(value.Line, "%s %s", o.Key(), o.blur(err))
		return false
	}
	if err := field.check(o); err != nil {
		p.complainf(value.Line, "%s %s", o.Key(), err)
		return false
	}
	if o.Secret && holdsPassword(field.String()) {
		p.complainf(value.Line, "%s names a user; a password has no place in this file: set the environment variable %s from a Secret", o.Key(), o.Env())
		return false
	}
	return true
}

var namespaceName = regexp.MustCompile(`^(` + dnsLabel + `)$`)

// perNamespace reads what is said for namespaces.
func (p *parser) perNamespace(value *yaml.Node) {
	for namespace, options := range p.entries(value, PerNamespace) {
		if !namespaceName.MatchString(namespace.Value) {
			p.complainf(namespace.Line, "%s names %q, which is no name of a namespace", PerNamespace, namespace.Value)
			continue
		}
		said := map[string]string{}
		for key, value := range p.entries(options, PerNamespace+"."+namespace.Value) {
			p.optionOf(namespace.Value, key, value, said)
		}
		p.file.namespaces[namespace.Value] = said
	}
}

func (p *parser) optionOf(namespace string, key, value *yaml.Node, said map[string]string) {
	mayBe := slices.DeleteFunc(slices.Clone(p.table), func(o Option) bool { return !o.Resource })
	i := slices.IndexFunc(p.table, func(o Option) bool { return o.Key() == key.Value })
	switch {
	case i < 0:
		p.complainf(key.Line, "unknown option %q%s", key.Value, suggest(mayBe, key.Value))
	case !p.table[i].Resource:
		p.complainf(key.Line, "%s is one of the operator as a whole, and not of namespace %s: set it beside %s", key.Value, namespace, PerNamespace)
	default:
		var s Settings
		if p.set(p.table[i], &s, value) {
			said[key.Value] = p.table[i].field(&s).String()
		}
	}
}

// entries goes through a mapping and complains where it is none, or where it says
// something twice.
func (p *parser) entries(n *yaml.Node, what string) func(yield func(key, value *yaml.Node) bool) {
	return func(yield func(key, value *yaml.Node) bool) {
		if n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		if n.Kind != yaml.MappingNode {
			p.complainf(n.Line, "%s is no mapping of names to what is said of them", what)
			return
		}
		seen := map[string]int{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if first := seen[key.Value]; first > 0 {
				p.complainf(key.Line, "%s has %s twice, first in line %d", what, key.Value, first)
				continue
			}
			seen[key.Value] = key.Line
			if !yield(key, n.Content[i+1]) {
				return
			}
		}
	}
}

func (p *parser) expect(key, value *yaml.Node, want string) {
	if value.Kind != yaml.ScalarNode || value.Value != want {
		p.complainf(value.Line, "%s is %q; this operator reads %s", key.Value, value.Value, want)
	}
}

// suggest finds the option that was probably meant: one that is written in
// another case, or by the name of its flag.
func suggest(table []Option, key string) string {
	plain := func(s string) string {
		return strings.ToLower(strings.NewReplacer("-", "", "_", "", ".", "").Replace(s))
	}
	var keys []string
	for _, o := range table {
		if plain(o.Key()) == plain(key) {
			return fmt.Sprintf("; write %s", o.Key())
		}
		keys = append(keys, o.Key())
	}
	slices.Sort(keys)
	return "; known are " + strings.Join(keys, ", ")
}

// blur keeps a value that may hold a password out of an error.
func (o Option) blur(err error) error {
	if o.Secret {
		return errors.New("is no plain text")
	}
	return err
}
