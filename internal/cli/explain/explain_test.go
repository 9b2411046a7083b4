package explain

import (
	"bytes"
	"flag"
	"os"
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
			if err := o.print(screen.New(out, func(string) string { return "" }), view{doris.ExplainSettings(dc, w, tc.key), doris.Unheard(dc, w), tc.key}); err != nil {
				t.Fatal(err)
			}
			for _, value := range []string{"5000", "917331", "10240", "64\n"} {
				if bytes.Contains(out.Bytes(), []byte(value)) {
					t.Errorf("a value is printed: %q", value)
				}
			}
			path := "testdata/" + tc.golden
			if *update {
				if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
