package conf

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// Properties reads Java properties.
func Properties(text string) Values {
	values := Values{}
	for _, line := range logicalLines(text) {
		key, value := splitProperty(line)
		if key != "" {
			values[key] = value
		}
	}
	return values
}

// logicalLines joins continued lines and leaves out blank ones and comments.
func logicalLines(text string) []string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	var out []string
	pending, continued := "", false
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimLeft(line, " \t\f")
		if !continued && (line == "" || line[0] == '#' || line[0] == '!') {
			continue
		}
		pending += line
		continued = endsInOddBackslashes(line)
		if continued {
			pending = pending[:len(pending)-1]
			continue
		}
		out = append(out, pending)
		pending = ""
	}
	if pending != "" {
		out = append(out, pending)
	}
	return out
}

func endsInOddBackslashes(s string) bool {
	n := 0
	for i := len(s) - 1; i >= 0 && s[i] == '\\'; i-- {
		n++
	}
	return n%2 == 1
}

// splitProperty ends the key at the first separator that no backslash guards.
func splitProperty(line string) (string, string) {
	end := 0
	for end < len(line) && !strings.ContainsRune(" \t\f=:", rune(line[end])) {
		if line[end] == '\\' {
			end++
		}
		end++
	}
	end = min(end, len(line))
	rest := strings.TrimLeft(line[end:], " \t\f")
	if rest != "" && (rest[0] == '=' || rest[0] == ':') {
		rest = strings.TrimLeft(rest[1:], " \t\f")
	}
	return unescape(line[:end]), strings.TrimRight(unescape(rest), " \t")
}

func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			out.WriteByte(s[i])
			continue
		}
		i++
		switch s[i] {
		case 'n':
			out.WriteByte('\n')
		case 't':
			out.WriteByte('\t')
		case 'r':
			out.WriteByte('\r')
		case 'f':
			out.WriteByte('\f')
		case 'u':
			r, used := unicodeEscape(s[i+1:])
			out.WriteRune(r)
			i += used
		default:
			out.WriteByte(s[i])
		}
	}
	return out.String()
}

// unicodeEscape reads four hexadecimal digits and, for half of a surrogate pair, the other half.
func unicodeEscape(s string) (rune, int) {
	r, ok := hex4(s)
	if !ok {
		return 'u', 0
	}
	if utf16.IsSurrogate(r) && len(s) >= 10 && s[4:6] == `\u` {
		if low, ok := hex4(s[6:]); ok {
			if both := utf16.DecodeRune(r, low); both != utf8.RuneError {
				return both, 10
			}
		}
	}
	return r, 4
}

func hex4(s string) (rune, bool) {
	if len(s) < 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(s[:4], 16, 16)
	return rune(n), err == nil
}

// FormatProperties writes what Java's Properties.store writes: a comment with the date, then escaped keys and values.
// The keys are sorted here, where Java's order is that of its hash table.
func FormatProperties(values Values, now time.Time) string {
	var out strings.Builder
	fmt.Fprintf(&out, "#%s\n", now.Format("Mon Jan 02 15:04:05 MST 2006"))
	for _, k := range values.Keys() {
		fmt.Fprintf(&out, "%s=%s\n", escape(k, true), escape(values[k], false))
	}
	return out.String()
}

var blanks = map[rune]string{'\n': `\n`, '\r': `\r`, '\t': `\t`, '\f': `\f`}

func escape(s string, key bool) string {
	var out strings.Builder
	for i, r := range s {
		switch {
		case r == ' ' && (key || i == 0), strings.ContainsRune(`\=:#!`, r):
			out.WriteByte('\\')
			out.WriteRune(r)
		case blanks[r] != "":
			out.WriteString(blanks[r])
		case r < 0x20 || r > 0x7e:
			for _, u := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&out, `\u%04X`, u)
			}
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}
