package conf

import (
	"fmt"
	"strings"
)

// Set gives a key a value. The line that counts keeps its place and its form,
// and only its value changes; earlier lines with the same key are removed,
// because scripts in the images read a key by searching for its name. A key that
// is not there yet is appended. White space around the value is cut, as Doris
// does when it reads it.
func (f *File) Set(key, value string) error {
	if !plainKey(key) {
		return fmt.Errorf("key %q: only letters, digits, '_', '-' and '.' are allowed", key)
	}
	value = strings.Trim(value, whiteSpace)
	at := f.last(key)
	if at < 0 {
		f.add(key, value)
		return nil
	}
	old := f.lines[at]
	end := old.raw[old.valueEnd:]
	switch end {
	case "", "\n", "\r\n", "\r":
	default:
		end = f.lineEnd() // the value ended in a continuation
	}
	prefix := old.raw[:old.valueAt]
	if strings.ContainsAny(prefix, "\r\n\\") || old.valueAt == skipKey(prefix) {
		// The key is written over several lines or with escapes, or stands alone:
		// write the assignment anew.
		prefix = key + " = "
	}
	f.lines[at] = parseLine(prefix + escape(value) + end)
	f.removeBefore(at, key)
	return nil
}

// skipKey returns where the key at the start of an assignment ends.
func skipKey(prefix string) int {
	return findKeyEnd(prefix, skipBlanks(prefix, 0), len(prefix))
}

// add appends an assignment.
func (f *File) add(key, value string) {
	end := f.lineEnd()
	if n := len(f.lines); n > 0 {
		last := &f.lines[n-1]
		if !isLineEnd(last.raw[len(last.raw)-1]) {
			last.raw += end
		}
		if logicalLength(last.raw+"x") > len(last.raw) {
			// It asks to be continued, and a blank line ends it. After a lone CR
			// an LF would only make that a CRLF.
			if strings.HasSuffix(last.raw, "\r") {
				end = "\r"
			}
			last.raw += end
		}
	}
	f.lines = append(f.lines, parseLine(key+" = "+escape(value)+end))
}

// removeBefore removes all lines before index at that assign to key.
func (f *File) removeBefore(at int, key string) {
	kept := f.lines[:0:0]
	for i := range f.lines {
		if l := &f.lines[i]; i < at && l.assigns && sameKey(l.key, key) {
			continue
		}
		kept = append(kept, f.lines[i])
	}
	f.lines = kept
}

// lineEnd returns the line end that the file uses.
func (f *File) lineEnd() string {
	for i := range f.lines {
		for _, end := range []string{"\r\n", "\n", "\r"} {
			if strings.HasSuffix(f.lines[i].raw, end) {
				return end
			}
		}
	}
	return "\n"
}

// plainKey tells keys that need no escaping.
func plainKey(key string) bool {
	for i := range len(key) {
		c := key[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (c < '0' || c > '9') && c != '_' && c != '-' && c != '.' {
			return false
		}
	}
	return key != ""
}

// escape writes a value so that it is read back as it was. Only what would be
// lost is escaped, since the backend does not know escapes.
func escape(value string) string {
	var b strings.Builder
	for i := range len(value) {
		switch c := value[i]; c {
		case '\\':
			b.WriteString(`\\`)
		case '\n':
			b.WriteString(`\n`)
		case '\r':
			b.WriteString(`\r`)
		case '=', ':':
			if i == 0 {
				b.WriteByte('\\')
			}
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
