// Package conf reads and writes the configuration files of the stand-in's FE and BE.
//
// The two systems differ, and so does this package: the FE reads Java properties (comments, three separators,
// continuation lines, escapes), the BE reads plain "key = value" lines. In both the last of two equal keys wins, the
// custom file wins over the base file, ${NAME} expands from the environment, and a missing NAME is an error.
package conf

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"time"
)

// Values are the settings of one node.
type Values map[string]string

// Syntax is a way of reading a file's text.
type Syntax func(text string) Values

// Load reads the base file and then the custom file of the directory that the base file's custom_config_dir names
// (by default the base file's own directory). The custom file may be absent.
func Load(base, customName string, parse Syntax, getenv func(string) (string, bool)) (Values, string, error) {
	text, err := os.ReadFile(base)
	if err != nil {
		return nil, "", fmt.Errorf("read conf: %w", err)
	}
	values := parse(string(text))
	if err := values.expand(getenv); err != nil {
		return nil, "", fmt.Errorf("conf %q: %w", base, err)
	}
	dir := values["custom_config_dir"]
	if dir == "" {
		dir = filepath.Dir(base)
	}
	custom := filepath.Join(dir, customName)
	text, err = os.ReadFile(custom)
	if errors.Is(err, fs.ErrNotExist) {
		return values, custom, nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("read custom conf: %w", err)
	}
	over := parse(string(text))
	if err := over.expand(getenv); err != nil {
		return nil, "", fmt.Errorf("custom conf %q: %w", custom, err)
	}
	maps.Copy(values, over)
	return values, custom, nil
}

func (v Values) expand(getenv func(string) (string, bool)) error {
	keys := v.Keys()
	for _, k := range keys {
		out, err := Expand(v[k], getenv)
		if err != nil {
			return fmt.Errorf("key %q: %w", k, err)
		}
		v[k] = out
	}
	return nil
}

// Keys returns the keys in order.
func (v Values) Keys() []string {
	keys := make([]string, 0, len(v))
	for k := range v {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// Int returns a whole number, or the default if the key is absent or no number.
func (v Values) Int(key string, def int) int {
	n, err := strconv.Atoi(strings.TrimSpace(v[key]))
	if err != nil {
		return def
	}
	return n
}

// Text returns a value, or the default if the key is absent or empty.
func (v Values) Text(key, def string) string {
	if s := strings.TrimSpace(v[key]); s != "" {
		return s
	}
	return def
}

// Bool tells whether the value is "true"; the default holds if the key is absent.
func (v Values) Bool(key string, def bool) bool {
	s, ok := v[key]
	if !ok {
		return def
	}
	return strings.EqualFold(strings.TrimSpace(s), "true")
}

// Expand replaces each ${NAME} by the environment's value.
func Expand(s string, getenv func(string) (string, bool)) (string, error) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(s, "${")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed {
			out.WriteString("${" + rest)
			return out.String(), nil
		}
		value, ok := getenv(name)
		if !ok {
			return "", fmt.Errorf("no such environment variable: %s", name)
		}
		out.WriteString(value)
		s = after
	}
}

// Lines reads the BE's format: one "key = value" per line, a line that starts with # is a comment.
func Lines(text string) Values {
	values := Values{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		if key = strings.TrimSpace(key); key != "" {
			values[key] = strings.TrimSpace(value)
		}
	}
	return values
}

// WriteLines sets keys in the BE's custom file: the new text goes to a file beside it, which then takes its name.
// A file that is mounted by itself therefore cannot be written.
func WriteLines(file string, set Values) error {
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read custom conf: %w", err)
	}
	values := Lines(string(text))
	maps.Copy(values, set)
	var out strings.Builder
	for _, k := range values.Keys() {
		fmt.Fprintf(&out, "%s = %s\n", k, values[k])
	}
	tmp := file + ".tmp"
	if err := os.WriteFile(tmp, []byte(out.String()), 0o644); err != nil {
		return fmt.Errorf("write custom conf: %w", err)
	}
	if err := os.Rename(tmp, file); err != nil {
		return fmt.Errorf("replace custom conf: %w", err)
	}
	return nil
}

// WriteProperties sets keys in the FE's custom file, in place: the file is truncated and written again, so a reader
// may see half of it, as with the real FE. With reset the earlier keys are dropped.
func WriteProperties(file string, set Values, reset bool, now time.Time) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("make custom conf directory: %w", err)
	}
	values := Values{}
	if !reset {
		text, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("read custom conf: %w", err)
		}
		values = Properties(string(text))
	}
	maps.Copy(values, set)
	if err := os.WriteFile(file, []byte(FormatProperties(values, now)), 0o644); err != nil {
		return fmt.Errorf("write custom conf: %w", err)
	}
	return nil
}
