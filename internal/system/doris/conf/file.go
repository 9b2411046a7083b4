// Package conf reads and edits the configuration files of Apache Doris (fe.conf,
// be.conf and their kin) without losing anything of them.
//
// The format is that of Java properties, which the frontend reads with the Java
// library and the backend with a parser of its own for the same common subset:
//
//	# a comment
//	query_port = 9030
//	meta_dir: ${DORIS_HOME}/doris-meta
//	JAVA_OPTS="-Xmx8192m -Dlog=$DORIS_HOME/log"
//	storage_root_path = /data/a.SSD;\
//	    /data/b
//
// A File is the list of its logical lines, each with its exact bytes. Bytes
// returns what Parse got, byte for byte, so an edit changes only what it names.
// Parse accepts every input: what Doris would refuse is found when a value is
// read as a port, a number or a list of paths.
//
// The last of several lines with one key counts, and keys are compared without
// regard to case. All functions are pure, and every method that only reads may
// be called on a nil File, which holds nothing.
package conf

import (
	"slices"
	"strings"
)

// byteOrderMark is what some editors put in front of UTF-8 text.
const byteOrderMark = "\xef\xbb\xbf"

// whiteSpace is what Doris cuts at both ends of a value.
const whiteSpace = " \t\f\r\n"

// File is a parsed configuration file.
type File struct {
	// bom tells that the file began with a byte order mark.
	bom   bool
	lines []line
}

// line is one logical line: a natural line together with the lines that
// continue it.
type line struct {
	// raw is the text, with all line ends.
	raw string
	// assigns tells an assignment from a comment or a blank line.
	assigns bool
	key     string
	value   string
	// valueAt and valueEnd delimit the value in raw, before its line end.
	valueAt, valueEnd int
}

// Entry is one assignment of a file, with the key as it was written and the
// value after escapes and continuations.
type Entry struct {
	Key   string
	Value string
}

// Parse reads a configuration file. It accepts every input.
func Parse(data []byte) *File {
	text := string(data)
	f := &File{}
	if rest, found := strings.CutPrefix(text, byteOrderMark); found {
		f.bom, text = true, rest
	}
	for len(text) > 0 {
		raw := text[:logicalLength(text)]
		text = text[len(raw):]
		f.lines = append(f.lines, parseLine(raw))
	}
	return f
}

// Bytes prints the file. An unchanged file prints as it was read.
func (f *File) Bytes() []byte {
	if f == nil {
		return nil
	}
	var b strings.Builder
	if f.bom {
		b.WriteString(byteOrderMark)
	}
	for i := range f.lines {
		b.WriteString(f.lines[i].raw)
	}
	return []byte(b.String())
}

// Entries returns all assignments in the order of the file, also those that a
// later one with the same key replaces.
func (f *File) Entries() []Entry {
	if f == nil {
		return nil
	}
	var entries []Entry
	for i := range f.lines {
		if l := &f.lines[i]; l.assigns {
			entries = append(entries, Entry{Key: l.key, Value: l.value})
		}
	}
	return entries
}

// Get returns the value of a key as Doris reads it: escapes are resolved, lines
// joined and white space around it cut; quotes and placeholders are kept.
func (f *File) Get(key string) (string, bool) {
	if i := f.last(key); i >= 0 {
		return strings.Trim(f.lines[i].value, whiteSpace), true
	}
	return "", false
}

// last returns the index of the line that counts for a key, or -1.
func (f *File) last(key string) int {
	if f == nil {
		return -1
	}
	for i, l := range slices.Backward(f.lines) {
		if l.assigns && sameKey(l.key, key) {
			return i
		}
	}
	return -1
}

// sameKey compares two keys without regard to case.
func sameKey(a, b string) bool {
	return strings.EqualFold(a, b)
}
