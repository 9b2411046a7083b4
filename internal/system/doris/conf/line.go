package conf

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// isBlank tells the characters that Java properties take for white space inside
// a line.
func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\f' }

// isLineEnd tells the characters that end a natural line.
func isLineEnd(c byte) bool { return c == '\n' || c == '\r' }

// lineEndLength returns how many bytes at i belong to one line end.
func lineEndLength(s string, i int) int {
	if s[i] == '\r' && i+1 < len(s) && s[i+1] == '\n' {
		return 2
	}
	return 1
}

// skipBlanks returns the first index at or after i that is not a blank.
func skipBlanks(s string, i int) int {
	for i < len(s) && isBlank(s[i]) {
		i++
	}
	return i
}

// logicalLength returns the length of the first logical line of s with its line
// end. Comments and blank lines are not continued; other lines are, by a
// backslash that is not itself escaped.
func logicalLength(s string) int {
	start := skipBlanks(s, 0)
	comment := start < len(s) && (s[start] == '#' || s[start] == '!')
	escaped := false
	for i := 0; i < len(s); i++ {
		switch {
		case isLineEnd(s[i]) && escaped && !comment:
			i += lineEndLength(s, i) - 1
			escaped = false
		case isLineEnd(s[i]):
			return i + lineEndLength(s, i)
		case s[i] == '\\':
			escaped = !escaped
		default:
			escaped = false
		}
	}
	return len(s)
}

// parseLine splits one logical line into key and value.
func parseLine(raw string) line {
	l := line{raw: raw}
	end := len(raw)
	for end > 0 && isLineEnd(raw[end-1]) {
		end--
	}
	// A line end in the middle belongs to a continuation, so trimming all line
	// ends at the tail can only cut blank continuations, which carry nothing.
	start := skipContinued(raw, 0, end)
	if start == end || raw[start] == '#' || raw[start] == '!' {
		return l
	}
	keyEnd := findKeyEnd(raw, start, end)
	valueAt := skipContinued(raw, keyEnd, end)
	if valueAt < end && (raw[valueAt] == '=' || raw[valueAt] == ':') {
		valueAt = skipContinued(raw, valueAt+1, end)
	}
	l.assigns = true
	l.key = unescape(raw[start:keyEnd])
	l.value = unescape(raw[valueAt:end])
	l.valueAt, l.valueEnd = valueAt, end
	return l
}

// skipContinued skips blanks and continuations: a backslash, a line end and the
// blanks that follow.
func skipContinued(raw string, i, end int) int {
	for i < end {
		switch {
		case isBlank(raw[i]):
			i++
		case raw[i] == '\\' && i+1 < end && isLineEnd(raw[i+1]):
			i += 1 + lineEndLength(raw, i+1)
		case raw[i] == '\\' && i+1 == end:
			// What remains of a continuation at the end of the file.
			i++
		default:
			return i
		}
	}
	return end
}

// findKeyEnd returns the index of the first character after the key: an
// unescaped blank, '=' or ':'.
func findKeyEnd(raw string, i, end int) int {
	for ; i < end; i++ {
		switch c := raw[i]; {
		case c == '\\' && i+1 < end && isLineEnd(raw[i+1]):
			// The key goes on in the next line, after its leading blanks.
			i = skipContinued(raw, i, end) - 1
		case c == '\\':
			i++
		case c == '=' || c == ':' || isBlank(c):
			return i
		}
	}
	return end
}

// unescape resolves escapes and joins continued lines.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		if i++; i == len(s) {
			break // a backslash at the very end continues nothing
		}
		switch c := s[i]; {
		case isLineEnd(c):
			i = skipBlanks(s, i+lineEndLength(s, i)) - 1
		case c == 'u':
			r, size := unicodeEscape(s[i:])
			b.WriteString(r)
			i += size - 1
		default:
			b.WriteByte(escapeValue(c))
		}
	}
	return b.String()
}

// escapeValue returns what a backslash followed by c stands for.
func escapeValue(c byte) byte {
	switch c {
	case 't':
		return '\t'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 'f':
		return '\f'
	}
	return c
}

// unicodeEscape reads "uXXXX" and returns the text and how many bytes it took.
// Java refuses a malformed one; here it stands for itself.
func unicodeEscape(s string) (string, int) {
	if len(s) < 5 {
		return "u", 1
	}
	n, err := strconv.ParseUint(s[1:5], 16, 16)
	if err != nil || !utf8.ValidRune(rune(n)) {
		return "u", 1
	}
	return string(rune(n)), 5
}
