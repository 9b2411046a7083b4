package client

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// answerFile is an answer of a Doris version as a test keeps it.
type answerFile struct {
	Columns []string
	Rows    [][]string
}

// TestColumnsOfVersions reads answers with the columns of old and new versions
// over the wire and compares what they are taken for.
func TestColumnsOfVersions(t *testing.T) {
	files, err := filepath.Glob("testdata/columns/*.json")
	must(t, err)
	if len(files) == 0 {
		t.Fatal("no answers")
	}
	for _, file := range files {
		if strings.HasSuffix(file, ".golden.json") {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			must(t, err)
			var a answerFile
			must(t, json.Unmarshal(text, &a))
			double := &sqlDouble{user: "root", answer: func(string) (*mysql.Result, error) {
				return texts(t, a.Columns, a.Rows...), nil
			}}
			at := double.start(t)
			var read any
			if strings.Contains(file, "frontends") {
				read, err = New(root()).Frontends(t.Context(), at)
			} else {
				read, err = New(root()).Backends(t.Context(), at)
			}
			must(t, err)
			got, err := json.MarshalIndent(read, "", "  ")
			must(t, err)
			golden := strings.TrimSuffix(file, ".json") + ".golden.json"
			if *update {
				must(t, os.WriteFile(golden, append(got, '\n'), 0o644))
			}
			want, err := os.ReadFile(golden)
			must(t, err)
			if diff := cmp.Diff(strings.TrimSpace(string(want)), string(got)); diff != "" {
				t.Errorf("rows differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRowsThatCannotBeTrustedAreNoList(t *testing.T) {
	for _, tc := range []struct {
		name    string
		columns []string
		row     []string
		fe, be  bool // whether the row is one of a frontend, of a backend
	}{
		{"all that is needed", []string{"Host", "EditLogPort", "BackendId", "HeartbeatPort"}, []string{"h", "9010", "1", "9050"}, true, true},
		{"no host", []string{"EditLogPort", "BackendId", "HeartbeatPort"}, []string{"9010", "1", "9050"}, false, false},
		{"empty host", []string{"Host", "EditLogPort", "BackendId", "HeartbeatPort"}, []string{" ", "9010", "1", "9050"}, false, false},
		{"ports that are none", []string{"Host", "EditLogPort", "BackendId", "HeartbeatPort"}, []string{"h", "x", "1", "70000"}, false, false},
		{"number of the backend that is none", []string{"Host", "EditLogPort", "BackendId", "HeartbeatPort"}, []string{"h", "1", "?", "9050"}, true, false},
		{"no columns that are known", []string{"a"}, []string{"b"}, false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			double := &sqlDouble{user: "root", answer: func(string) (*mysql.Result, error) {
				return texts(t, tc.columns, tc.row), nil
			}}
			at := double.start(t)
			_, err := New(root()).Frontends(t.Context(), at)
			checkTrust(t, err, tc.fe)
			_, err = New(root()).Backends(t.Context(), at)
			checkTrust(t, err, tc.be)
		})
	}
}

func checkTrust(t *testing.T, err error, want bool) {
	t.Helper()
	if want {
		must(t, err)
		return
	}
	wantKind(t, err, ErrAnswer)
}

// asTable builds an answer from text: rows by lines, cells by bars, the first
// line has the columns.
func asTable(text string) table {
	lines := strings.Split(text, "\n")
	names := strings.Split(strings.ToLower(lines[0]), "|")
	t := table{columns: map[string]bool{}}
	for _, n := range names {
		t.columns[n] = true
	}
	for _, line := range lines[1:] {
		r := row{}
		for i, cell := range strings.Split(line, "|") {
			if i < len(names) {
				r[names[i]] = cell
			}
		}
		t.rows = append(t.rows, r)
	}
	return t
}

func FuzzRows(f *testing.F) {
	f.Add("Host|EditLogPort|BackendId|HeartbeatPort|TabletNum|Tag|Status\nh|9010|1|9050|5|{\"location\":\"a\"}|{\"isShutdown\":true}")
	f.Add("IP|Role\n1.2.3.4|MASTER")
	f.Add("Key|Value|IsMutable\na|b|true")
	f.Add("BackendId|Host|HeartbeatPort|Tag|Status\n1|h|1|[]|null\n1|h|1|{\"location\":{}}|{\"currentFragmentNum\":1e99}")
	f.Fuzz(func(t *testing.T, text string) {
		answer := asTable(text)
		fes, err := frontends(answer)
		if err == nil && len(fes) != len(answer.rows) {
			t.Errorf("%d rows are %d frontends", len(answer.rows), len(fes))
		}
		for _, f := range fes {
			if f.Host == "" || f.EditLogPort < 1 || f.QueryPort < 0 || f.QueryPort > 65535 {
				t.Errorf("frontend %+v", f)
			}
		}
		bes, err := backends(answer)
		if err == nil && len(bes) != len(answer.rows) {
			t.Errorf("%d rows are %d backends", len(answer.rows), len(bes))
		}
		for _, b := range bes {
			if b.ID < 1 || b.Host == "" || b.HeartbeatPort < 1 {
				t.Errorf("backend %+v", b)
			}
		}
		items, err := configItems(answer)
		if err == nil && len(items) != len(answer.rows) {
			t.Errorf("%d rows are %d settings", len(answer.rows), len(items))
		}
	})
}
