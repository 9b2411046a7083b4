package conf

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	tests := map[string]struct {
		text string
		want []Entry
	}{
		"empty file has no entries":                        {"", nil},
		"blank lines and comments are no entries":          {"\n  \n# a = b\n  ! c = d\n", nil},
		"equals sign with blanks around it":                {"query_port = 9030\n", []Entry{{"query_port", "9030"}}},
		"equals sign without blanks":                       {"query_port=9030", []Entry{{"query_port", "9030"}}},
		"colon separates":                                  {"meta_dir: /data", []Entry{{"meta_dir", "/data"}}},
		"blank separates":                                  {"meta_dir /data", []Entry{{"meta_dir", "/data"}}},
		"only the first separator counts":                  {"a = b = c:d", []Entry{{"a", "b = c:d"}}},
		"leading blanks of a line do not count":            {"\t  a = b", []Entry{{"a", "b"}}},
		"CRLF ends lines":                                  {"a = b\r\nc = d\r\n", []Entry{{"a", "b"}, {"c", "d"}}},
		"CR alone ends lines":                              {"a = b\rc = d", []Entry{{"a", "b"}, {"c", "d"}}},
		"byte order mark is no part of the key":            {"\xef\xbb\xbfa = b", []Entry{{"a", "b"}}},
		"quotes are kept":                                  {`JAVA_OPTS="-Xmx8g -Da=b"`, []Entry{{"JAVA_OPTS", `"-Xmx8g -Da=b"`}}},
		"backslash continues a line":                       {"a = b;\\\n    c\nd = e", []Entry{{"a", "b;c"}, {"d", "e"}}},
		"backslash continues over CRLF":                    {"a = b;\\\r\n  c\r\n", []Entry{{"a", "b;c"}}},
		"escaped backslash does not continue":              {"a = b\\\\\nc = d", []Entry{{"a", `b\`}, {"c", "d"}}},
		"comment is not continued":                         {"# a\\\nb = c", []Entry{{"b", "c"}}},
		"hash sign after a continuation is no comment":     {"a = b\\\n# c", []Entry{{"a", "b# c"}}},
		"hash sign in a value is part of it":               {"a = b # c", []Entry{{"a", "b # c"}}},
		"blank line ends a continuation":                   {"a = b\\\n\nc = d", []Entry{{"a", "b"}, {"c", "d"}}},
		"continuation at the end of the file":              {"a = b\\", []Entry{{"a", "b"}}},
		"key alone has an empty value":                     {"a", []Entry{{"a", ""}}},
		"value on the next line":                           {"a = \\\n  b", []Entry{{"a", "b"}}},
		"key continued on the next line":                   {"que\\\n  ry_port = 9030", []Entry{{"query_port", "9030"}}},
		"escaped separators belong to the key":             {`a\=b\ c = d`, []Entry{{"a=b c", "d"}}},
		"escapes in a value":                               {`a = x\ty\u0041\q`, []Entry{{"a", "x\tyAq"}}},
		"malformed unicode escape stands for itself":       {`a = \u00zz`, []Entry{{"a", "u00zz"}}},
		"shell line of the shipped files is an entry":      {"CUR_DATE=`date +%Y%m%d-%H%M%S`", []Entry{{"CUR_DATE", "`date +%Y%m%d-%H%M%S`"}}},
		"text without a key is an entry with none":         {"= b", []Entry{{"", "b"}}},
		"backslash alone on a line continues into nothing": {"\\\n\na = b", []Entry{{"a", "b"}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := Parse([]byte(test.text))
			if diff := cmp.Diff(test.want, f.Entries()); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
			if got := string(f.Bytes()); got != test.text {
				t.Errorf("printed %q, want %q", got, test.text)
			}
		})
	}
}

func TestGetTakesTheLastKeyWithoutRegardToCase(t *testing.T) {
	f := Parse([]byte("query_port = 1\nQUERY_PORT = 2  \nother = 3\n"))
	if got, found := f.Get("Query_Port"); got != "2" || !found {
		t.Errorf("Get = %q, %v; want 2, true", got, found)
	}
	if got, found := f.Get("missing"); found {
		t.Errorf("Get of a missing key = %q, true", got)
	}
	var none *File
	if _, found := none.Get("query_port"); found || none.Entries() != nil || none.Bytes() != nil {
		t.Error("a nil file holds something")
	}
}

func TestSet(t *testing.T) {
	tests := map[string]struct {
		text, key, value, want string
	}{
		"replaces in place and keeps the form":     {"# x\na  :  1\r\nb=2\r\n", "a", "7", "# x\na  :  7\r\nb=2\r\n"},
		"removes earlier duplicates":               {"a=1\nb=2\nA=3\n", "a", "7", "b=2\nA=7\n"},
		"appends with the line end of the file":    {"a=1\r\n", "b", "2", "a=1\r\nb = 2\r\n"},
		"appends after a last line without end":    {"a=1", "b", "2", "a=1\nb = 2\n"},
		"appends after an open continuation":       {`a=1\`, "b", "2", "a=1\\\n\nb = 2\n"},
		"appends to an empty file":                 {"", "b", "2", "b = 2\n"},
		"gives a key alone a value":                {"a\nb=1\n", "a", "2", "a = 2\nb=1\n"},
		"replaces a continued value":               {"a=1;\\\n  2\nb=3\n", "a", "4", "a=4\nb=3\n"},
		"gives an empty value a value":             {"a=\n", "a", "1", "a=1\n"},
		"writes an assignment over two lines anew": {"a \\\n = 1\n", "a", "2", "a = 2\n"},
		"escapes what would be lost":               {"a=1\n", "a", `x\y`, "a=x\\\\y\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := Parse([]byte(test.text))
			if err := f.Set(test.key, test.value); err != nil {
				t.Fatal(err)
			}
			if got := string(f.Bytes()); got != test.want {
				t.Errorf("printed %q, want %q", got, test.want)
			}
		})
	}
	if err := Parse(nil).Set("a b", "c"); err == nil {
		t.Error("a key with a blank was accepted")
	}
}

func TestExpand(t *testing.T) {
	env := func(name string) (string, bool) {
		value, found := map[string]string{"HOME": "/h", "EMPTY": ""}[name]
		return value, found
	}
	f := Parse([]byte("plain = /x\nhome = ${HOME}/y${EMPTY}/${HOME}\nshell = $HOME/z\nopen = ${HOME\nbad = ${NONE}/y\n"))
	for key, want := range map[string]string{
		"plain": "/x", "home": "/h/y//h", "shell": "$HOME/z", "open": "${HOME", "none": "",
	} {
		if got, _, err := f.Expand(key, env); got != want || err != nil {
			t.Errorf("Expand(%s) = %q, %v; want %q", key, got, err, want)
		}
	}
	_, _, err := f.Expand("bad", env)
	if err == nil || !strings.Contains(err.Error(), `bad = "${NONE}/y"`) || !strings.Contains(err.Error(), "NONE") {
		t.Errorf("error of a missing variable = %v; want one that names key, value and variable", err)
	}
}

func TestTypedReads(t *testing.T) {
	f := Parse([]byte(`
good = 9030
zero = 0
big = 65536
word = 90x30
off = -1
empty =
yes = TRUE
maybe = yes
`))
	t.Run("port", func(t *testing.T) {
		for key, want := range map[string]int32{"good": 9030, "missing": 7, "empty": 7} {
			if got, err := f.Port(key, 7); got != want || err != nil {
				t.Errorf("Port(%s) = %d, %v; want %d", key, got, err, want)
			}
		}
		for _, key := range []string{"zero", "big", "word", "off"} {
			_, err := f.Port(key, 7)
			var bad *ValueError
			value, _ := f.Get(key)
			if !errors.As(err, &bad) || bad.Key != key || bad.Value != value {
				t.Errorf("Port(%s) error = %v; want one that names key and value", key, err)
			}
		}
	})
	t.Run("optional port", func(t *testing.T) {
		for key, want := range map[string]int32{"good": 9030, "missing": 0, "empty": 0, "off": 0} {
			if got, err := f.OptionalPort(key); got != want || err != nil {
				t.Errorf("OptionalPort(%s) = %d, %v; want %d", key, got, err, want)
			}
		}
		if _, err := f.OptionalPort("big"); err == nil {
			t.Error("OptionalPort accepted 65536")
		}
	})
	t.Run("number", func(t *testing.T) {
		for key, want := range map[string]int64{"good": 9030, "off": -1, "missing": 5, "empty": 5} {
			if got, err := f.Int(key, 5); got != want || err != nil {
				t.Errorf("Int(%s) = %d, %v; want %d", key, got, err, want)
			}
		}
		if _, err := f.Int("word", 5); err == nil {
			t.Error("Int accepted 90x30")
		}
	})
	t.Run("bool", func(t *testing.T) {
		for key, want := range map[string]bool{"yes": true, "missing": false, "empty": false} {
			if got, err := f.Bool(key, false); got != want || err != nil {
				t.Errorf("Bool(%s) = %v, %v; want %v", key, got, err, want)
			}
		}
		if _, err := f.Bool("maybe", false); err == nil {
			t.Error("Bool accepted yes")
		}
	})
}

func TestUnquote(t *testing.T) {
	for value, want := range map[string]string{`"a b"`: "a b", `a`: "a", `"`: `"`, `"a`: `"a`, ``: ``} {
		if got := Unquote(value); got != want {
			t.Errorf("Unquote(%q) = %q, want %q", value, got, want)
		}
	}
}

func TestStorageRoots(t *testing.T) {
	tests := map[string]struct {
		value string
		want  []StorageRoot
		fails bool
	}{
		"one path":                              {"/data", []StorageRoot{{Path: "/data"}}, false},
		"medium as suffix, in any case":         {"/a.SSD;/b.hdd", []StorageRoot{{"/a", "SSD", ""}, {"/b", "HDD", ""}}, false},
		"a dot inside a path stays":             {"/data.v1/doris;/mnt/disk.1", []StorageRoot{{Path: "/data.v1/doris"}, {Path: "/mnt/disk.1"}}, false},
		"capacity without a name":               {"/a.SSD,50", []StorageRoot{{"/a", "SSD", "50"}}, false},
		"properties":                            {"/a,medium:ssd,capacity:50", []StorageRoot{{"/a", "SSD", "50"}}, false},
		"blanks, empty entries, trailing slash": {" /a/ ; ;/b;", []StorageRoot{{Path: "/a"}, {Path: "/b"}}, false},
		"a path named twice is one":             {"/a;/a/", []StorageRoot{{Path: "/a"}}, false},
		"nothing":                               {"", nil, false},
		"relative path is refused":              {"data", nil, true},
		"medium alone is refused":               {".SSD", nil, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := StorageRoots(test.value)
			if (err != nil) != test.fails {
				t.Fatalf("error = %v, want one: %v", err, test.fails)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("roots (-want +got):\n%s", diff)
			}
		})
	}
}

// confText draws text in which the characters that mean something are frequent.
func confText() *rapid.Generator[string] {
	return rapid.StringOf(rapid.SampledFrom([]rune("ab=: \t\\\n\r#!\"${}u0;\fé")))
}

func TestPropertyPrintReturnsWhatWasParsed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := confText().Draw(t, "text")
		if got := string(Parse([]byte(text)).Bytes()); got != text {
			t.Fatalf("printed %q, want %q", got, text)
		}
	})
}

func TestPropertySetChangesOnlyItsKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkSet(t, confText().Draw(t, "text"),
			rapid.SampledFrom([]string{"a", "b", "ab", "new"}).Draw(t, "key"),
			confText().Draw(t, "value"))
	})
}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkSet sets a key and checks that it, and nothing else, changed, also for
// one who parses the file again.
func checkSet(t failer, text, key, value string) {
	t.Helper()
	f := Parse([]byte(text))
	others := entriesBut(f, key)
	if err := f.Set(key, value); err != nil {
		return
	}
	want := strings.Trim(value, whiteSpace)
	for _, g := range []*File{f, Parse(f.Bytes())} {
		if got, found := g.Get(key); got != want || !found {
			t.Fatalf("Set(%q, %q) on %q: reads %q, %v", key, want, text, got, found)
		}
		if diff := cmp.Diff(others, entriesBut(g, key)); diff != "" {
			t.Fatalf("Set(%q, %q) on %q changed other keys (-want +got):\n%s", key, value, text, diff)
		}
	}
}

func entriesBut(f *File, key string) []Entry {
	var entries []Entry
	for _, e := range f.Entries() {
		if !sameKey(e.Key, key) {
			entries = append(entries, e)
		}
	}
	return entries
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "a = b\n", "\xef\xbb\xbfa=b\r\n", "a=b\\\n  c", "# x\\\n\ry: z\\u00e9\\"} {
		f.Add([]byte(seed), "a", "x")
	}
	f.Fuzz(func(t *testing.T, data []byte, key, value string) {
		if got := Parse(data).Bytes(); string(got) != string(data) {
			t.Fatalf("printed %q, want %q", got, data)
		}
		checkSet(t, string(data), key, value)
	})
}

func FuzzStorageRoots(f *testing.F) {
	f.Add("/a.SSD,50;/b,medium:hdd")
	f.Fuzz(func(t *testing.T, value string) {
		roots, err := StorageRoots(value)
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, r := range roots {
			if r.Path == "" || r.Path[0] != '/' || seen[r.Path] {
				t.Fatalf("StorageRoots(%q) = %v", value, roots)
			}
			seen[r.Path] = true
		}
	})
}
