package conf

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestProperties(t *testing.T) {
	cases := map[string]struct {
		text string
		want Values
	}{
		"spaces around the equals sign are not part of key or value": {"http_port = 8030 ", Values{"http_port": "8030"}},
		"the last of two equal keys wins":                            {"a=1\na = 2", Values{"a": "2"}},
		"comments and blank lines are left out":                      {"# a=1\n! b=2\n\n  # c=3\nd=4", Values{"d": "4"}},
		"a colon or a space separates as well":                       {"a:1\nb 2", Values{"a": "1", "b": "2"}},
		"a backslash continues the line":                             {"a = 1,\\\n   2\nb=3", Values{"a": "1,2", "b": "3"}},
		"carriage returns end lines":                                 {"a=1\r\nb=2\r\n", Values{"a": "1", "b": "2"}},
		"escapes are resolved":                                       {`a=x\ty\u00e9\=z`, Values{"a": "x\tyé=z"}},
		"a value may hold the separator":                             {"JAVA_OPTS=-Xmx1g -Da=b", Values{"JAVA_OPTS": "-Xmx1g -Da=b"}},
		"a key without a value is empty":                             {"a", Values{"a": ""}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Properties(c.text)); diff != "" {
				t.Errorf("values differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLoadPrefersTheCustomFileOfTheDirectoryThatTheBaseNames(t *testing.T) {
	dir := t.TempDir()
	custom := filepath.Join(dir, "custom")
	if err := os.Mkdir(custom, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "fe.conf"), "query_port=9030\ncustom_config_dir=${HOME_DIR}/custom\nkeep=1\n")
	write(t, filepath.Join(custom, "fe_custom.conf"), "query_port=9130\ncustom_config_dir=/elsewhere\n")
	env := func(name string) (string, bool) { return dir, name == "HOME_DIR" }
	values, file, err := Load(filepath.Join(dir, "fe.conf"), "fe_custom.conf", Properties, env)
	if err != nil {
		t.Fatal(err)
	}
	if values["query_port"] != "9130" || values["keep"] != "1" || file != filepath.Join(custom, "fe_custom.conf") {
		t.Errorf("got %v from %s", values, file)
	}
}

func TestLoadRefusesAMissingEnvironmentVariable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "be.conf")
	write(t, file, "storage_root_path=${NOWHERE}/storage\n")
	_, _, err := Load(file, "be_custom.conf", Lines, func(string) (string, bool) { return "", false })
	if err == nil || !strings.Contains(err.Error(), "NOWHERE") {
		t.Errorf("got error %v, want one that names the variable", err)
	}
}

func TestWritePropertiesTruncatesInPlace(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "new", "fe_custom.conf")
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	must(t, WriteProperties(file, Values{"a": "1 :2"}, true, now))
	before, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	must(t, WriteProperties(file, Values{"b": "2"}, false, now))
	want := "#Fri Jan 02 03:04:05 UTC 2026\na=1 \\:2\nb=2\n"
	if got := read(t, file); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	must(t, WriteProperties(file, Values{"c": "3"}, true, now))
	if got := read(t, file); strings.Contains(got, "a=") || !strings.Contains(got, "c=3") {
		t.Errorf("after a reset got %q", got)
	}
	after, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if !os.SameFile(before, after) {
		t.Error("the file was replaced; the FE writes in place")
	}
}

func TestWriteLinesReplacesTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "be_custom.conf")
	must(t, WriteLines(file, Values{"a": "1"}))
	before, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	must(t, WriteLines(file, Values{"b": "2"}))
	after, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if os.SameFile(before, after) {
		t.Error("the file was written in place; the BE renames a new one over it")
	}
	if got, want := read(t, file), "a = 1\nb = 2\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func FuzzPropertiesRoundTrip(f *testing.F) {
	f.Add("key", "value")
	f.Add("a b", " leading\ttab")
	f.Add("ünïcode", "😀\\#!=:")
	now := time.Unix(0, 0).UTC()
	f.Fuzz(func(t *testing.T, key, value string) {
		_ = Properties(key + value) // any text must be read without a panic
		if key == "" || strings.ToValidUTF8(key, "") != key || strings.ToValidUTF8(value, "") != value {
			return
		}
		// The reader trims a value's trailing blanks, as the FE does with what it reads.
		value = strings.TrimRight(value, " \t")
		got := Properties(FormatProperties(Values{key: value}, now))
		if diff := cmp.Diff(Values{key: value}, got); diff != "" {
			t.Errorf("round trip differs (-want +got):\n%s", diff)
		}
	})
}

func write(t *testing.T, file, text string) {
	t.Helper()
	must(t, os.WriteFile(file, []byte(text), 0o644))
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	must(t, err)
	return string(b)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
