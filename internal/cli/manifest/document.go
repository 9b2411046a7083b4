package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	sigsyaml "sigs.k8s.io/yaml"
)

// document is one YAML document of a file. Before it are as many empty lines as
// the file has lines before it, so that every parser counts as the file does.
type document []byte

// documents cuts a file at the lines that begin with three dashes.
func documents(text []byte) []document {
	var out []document
	var doc []byte
	line := 0
	for part := range bytes.Lines(text) {
		line++
		rest, cut := bytes.CutPrefix(part, []byte("---"))
		if cut && (len(bytes.TrimSpace(rest)) == 0 || rest[0] == ' ' || rest[0] == '\t') {
			out = append(out, doc)
			// What follows the dashes on their line belongs to the next document.
			doc = append(bytes.Repeat([]byte("\n"), line-1), "   "...)
			doc = append(doc, rest...)
			continue
		}
		doc = append(doc, part...)
	}
	return append(out, doc)
}

// entry is one resource of a document: of a list, one of its items.
type entry struct {
	json []byte
	node *yaml.Node // nil where the lines are not known
}

// parse reads a document. Nothing is in one of comments alone.
func (d document) parse() ([]entry, error) {
	text, err := sigsyaml.YAMLToJSONStrict(d)
	if err != nil {
		return nil, err
	}
	if bytes.Equal(text, []byte("null")) {
		return nil, nil
	}
	var root yaml.Node
	e := entry{json: text}
	if yaml.Unmarshal(d, &root) == nil && len(root.Content) == 1 {
		e.node = root.Content[0]
	}
	what := e.identity()
	if what.Kind != "List" || what.APIVersion != "v1" {
		return []entry{e}, nil
	}
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("line %d: %w", e.line(), err)
	}
	items := make([]entry, 0, len(list.Items))
	for i, raw := range list.Items {
		node, _ := descend(e.node, []string{"items", strconv.Itoa(i)})
		items = append(items, entry{json: raw, node: node})
	}
	return items, nil
}

func (e entry) identity() identity {
	var what struct {
		metav1.TypeMeta `json:",inline"`

		Metadata identity `json:"metadata"`
	}
	if err := json.Unmarshal(e.json, &what); err != nil {
		return identity{} // no mapping, so no manifest
	}
	what.Metadata.TypeMeta = what.TypeMeta
	return what.Metadata
}

func (e entry) line() int {
	if e.node == nil {
		return 1
	}
	return e.node.Line
}

// lineOf finds the line of a field, such as `spec.items[0].name`, or of the
// nearest one above it.
func (e entry) lineOf(path string) int {
	path = strings.NewReplacer("[", ".", "]", "").Replace(path)
	_, line := descend(e.node, strings.Split(path, "."))
	return max(line, e.line())
}

// descend follows keys and indexes into a node. The line is that of the last key
// that was found.
func descend(n *yaml.Node, keys []string) (found *yaml.Node, line int) {
	for _, key := range keys {
		next, at := child(n, key)
		if next == nil {
			return nil, line
		}
		n, line = next, at
	}
	return n, line
}

func child(n *yaml.Node, key string) (value *yaml.Node, line int) {
	if n == nil {
		return nil, 0
	}
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind == yaml.SequenceNode {
		if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < len(n.Content) {
			return n.Content[i], n.Content[i].Line
		}
	}
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1], n.Content[i].Line
		}
	}
	return nil, 0
}
