package explain

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/cli/screen"
	"github.com/fairlead-dev/fairlead/internal/system/doris"
	"github.com/fairlead-dev/fairlead/internal/system/doris/overrides"
)

var update = flag.Bool("update", false, "write the golden files")

// changed is a setting as a node says it: in force is another value than that of its file,
// or of what a check was made.
func changed(key string, inFile bool, value string) overrides.Setting {
	s := overrides.Setting{Key: key, InFile: inFile, Changed: inFile && value != ""}
	if !inFile {
		s.Check = overrides.Check(key, value)
	}
	return s
}

// recorded is a cluster with a ConfigMap, in which somebody has changed settings of two
// backends. One of those lost a change when it was started again.
func recorded() (*dorisv1.DorisCluster, doris.World) {
	noon := time.Date(2026, 5, 6, 12, 0, 0, 0, time.UTC)
	poll := func(pod, start string, minute int, settings ...overrides.Setting) overrides.Poll {
		return overrides.Poll{Pod: pod, Start: start, At: noon.Add(time.Duration(minute) * time.Minute), Settings: settings}
	}
	be := overrides.Component{Image: "be", Nodes: 2, Exists: func(string) bool { return true }}
	file, free := changed("streaming_load_max_mb", true, ""), changed("max_tablet_version_num", false, "2000")
	record := overrides.Fold(overrides.Record{}, be, []overrides.Poll{poll("doris-be-2", "a", 0, file, free), poll("doris-be-10", "b", 0, file, free)})
	record = overrides.Fold(record, be, []overrides.Poll{
		poll("doris-be-2", "a", 5, changed("streaming_load_max_mb", true, "5000"), free),
		poll("doris-be-10", "b", 5, file, changed("max_tablet_version_num", false, "917331")),
	})
	record = overrides.Fold(record, be, []overrides.Poll{poll("doris-be-10", "c", 7, file, free)})

	dc := &dorisv1.DorisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "analytics", Name: "doris"}}
	dc.Spec.FeSpec = &dorisv1.FeSpec{BaseSpec: dorisv1.BaseSpec{Image: "apache/doris:fe-2.1.8"}}
	dc.Spec.BeSpec = &dorisv1.BeSpec{BaseSpec: dorisv1.BaseSpec{
		Image: "apache/doris:be-2.1.8", ConfigMapInfo: dorisv1.ConfigMapInfo{ConfigMaps: []dorisv1.MountConfigMapInfo{{ConfigMapName: "be-conf", MountPath: "/etc/doris"}}},
	}}
	return dc, doris.World{
		ConfigMaps: map[string]*corev1.ConfigMap{"be-conf": {
			ObjectMeta: metav1.ObjectMeta{Name: "be-conf"}, Data: map[string]string{"be.conf": "streaming_load_max_mb = 10240\nbrpc_num_threads = 64\n"},
		}},
		OwnMaps: map[string]*corev1.ConfigMap{"doris-observed": {Data: map[string]string{"be": record.String()}}},
	}
}

func TestSettingsAreExplained(t *testing.T) {
	dc, w := recorded()
	for _, tc := range []struct{ golden, key, output string }{
		{"all.txt", "", ""},
		{"named.txt", "streaming_load_max_mb", ""},
		{"unnamed.txt", "max_tablet_version_num", ""},
		{"nobody.txt", "qe_slow_log_ms", ""},
		{"all.yaml", "", "yaml"},
		{"nobody.json", "qe_slow_log_ms", "json"},
	} {
		t.Run(tc.golden, func(t *testing.T) {
			out := &bytes.Buffer{}
			o := &options{IOStreams: genericiooptions.IOStreams{Out: out}, output: tc.output}
			if err := o.print(screen.New(out, func(string) string { return "" }), view{settings: doris.ExplainSettings(dc, w, tc.key), unheard: doris.Unheard(dc, w), key: tc.key}); err != nil {
				t.Fatal(err)
			}
			for _, value := range []string{"5000", "917331", "10240", "64\n"} {
				if bytes.Contains(out.Bytes(), []byte(value)) {
					t.Errorf("a value is printed: %q", value)
				}
			}
			golden(t, tc.golden, out.Bytes())
		})
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := "testdata/" + name
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestValuesOfNodes holds what is printed of the values that nodes said.
func TestValuesOfNodes(t *testing.T) {
	dc, w := recorded()
	said := []doris.Answer{
		{Component: "fe", Pod: "doris-fe-0", Values: []doris.Value{}},
		{Component: "be", Pod: "doris-be-2", Values: []doris.Value{
			{Key: "streaming_load_max_mb", Value: "5000", Mutable: true}, {Key: "sys_log_dir", Value: strings.Repeat("/größe", 30)}, {Key: "s3_secret", Hidden: true}, {Key: "tag", Value: ""},
		}},
		{Component: "be", Pod: "doris-be-10", Silent: "connection refused\nby nobody", Values: []doris.Value{}},
	}
	silent := []doris.Answer{{Component: "be", Pod: "doris-be-2", Silent: "its container does not run", Values: []doris.Value{}}}
	for _, tc := range []struct {
		golden, key, output string
		nodes               []doris.Answer
	}{
		{"values.txt", "", "", said},
		{"values-wide.txt", "", "wide", said},
		{"values.json", "streaming_load_max_mb", "json", said},
		{"values-unknown.txt", "no_such_key", "", said[:1]},
		{"values-silent.txt", "streaming_load_max_mb", "", silent},
		{"values-none.txt", "", "", []doris.Answer{}},
	} {
		t.Run(tc.golden, func(t *testing.T) {
			out := &bytes.Buffer{}
			o := &options{IOStreams: genericiooptions.IOStreams{Out: out}, output: tc.output}
			v := view{settings: doris.ExplainSettings(dc, w, tc.key), unheard: doris.Unheard(dc, w), key: tc.key, nodes: tc.nodes}
			if err := o.print(screen.New(out, func(string) string { return "" }), v); err != nil {
				t.Fatal(err)
			}
			golden(t, tc.golden, out.Bytes())
		})
	}
}

func TestWhichValuesAreWanted(t *testing.T) {
	t.Parallel()
	dc, w := recorded()
	for name, tc := range map[string]struct {
		key, setting string
		all, want    bool
	}{
		"the one that was asked for":         {key: "tag", setting: "tag", want: true},
		"as a node shows it":                 {key: "tag", setting: "experimental_tag", want: true},
		"another one":                        {key: "tag", setting: "x"},
		"another one, wide":                  {key: "tag", setting: "x", all: true},
		"all, and the file names it":         {setting: "brpc_num_threads", want: true},
		"all, and somebody changed it":       {setting: "max_tablet_version_num", want: true},
		"all, and it is as the image has it": {setting: "x"},
		"so, and really all":                 {setting: "x", all: true, want: true},
	} {
		v := view{settings: doris.ExplainSettings(dc, w, tc.key), key: tc.key}
		if got := v.wants(tc.all)("be", tc.setting); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestFlagsOfValues(t *testing.T) {
	t.Parallel()
	for _, f := range []valueFlags{{user: "x"}, {secrets: true}, {passwordStdin: true}, {show: true, passwordStdin: true}} {
		if f.check() == nil {
			t.Errorf("%+v is taken", f)
		}
	}
	for _, f := range []valueFlags{{}, {show: true}, {show: true, user: "x", passwordStdin: true, secrets: true}} {
		if err := f.check(); err != nil {
			t.Errorf("%+v: %v", f, err)
		}
	}
	if _, err := (&valueFlags{}).reader(nil)(t.Context(), "n", "account"); err == nil || !strings.Contains(err.Error(), "--read-secrets") {
		t.Errorf("a Secret is read unasked: %v", err)
	}
}
