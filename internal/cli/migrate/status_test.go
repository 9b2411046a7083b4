package migrate

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	cliplan "github.com/fairlead-dev/fairlead/internal/cli/plan"
	"github.com/fairlead-dev/fairlead/internal/system/doris"
)

// TestFilesThatAreCutShort holds which files are called cut short, and that no value of
// them is told.
func TestFilesThatAreCutShort(t *testing.T) {
	t.Parallel()
	const lost = `{"image":"i","nodes":{"doris-fe-0":{"start":"a","lost":{"qe_slow_log_ms":"2026-05-06T12:00:00Z"}},"doris-fe-1":{"start":"b"}}}`
	for name, test := range map[string]struct {
		kind dorisv1.ComponentType
		pod  string
		file string
		none bool
		want string
	}{
		"whole":                              {kind: "fe", pod: "doris-fe-0", file: "#Mon\nqe_slow_log_ms=917331\n"},
		"there is none":                      {kind: "fe", pod: "doris-fe-0", none: true},
		"empty, and nothing was changed":     {kind: "fe", pod: "doris-fe-1", file: ""},
		"empty, and a setting was":           {kind: "fe", pod: "doris-fe-0", file: "", want: "is empty: the node ended while it wrote it, or nothing was ever kept in it; known before: qe_slow_log_ms"},
		"ends in the middle of a value":      {kind: "fe", pod: "doris-fe-1", file: "#Mon\nqe_slow_log_ms=917331", want: "ends in the middle of a line"},
		"ends in the middle of the comment":  {kind: "fe", pod: "doris-fe-0", file: "#Mo", want: "known before: qe_slow_log_ms"},
		"a backend, which replaces its file": {kind: "be", pod: "doris-be-0", file: "streaming_load_max_mb = 917331"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dc := &dorisv1.DorisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "analytics", Name: "doris"}}
			r := &run{seen: &seen{subject: &cliplan.Subject{Cluster: dc, World: doris.World{
				OwnMaps: map[string]*corev1.ConfigMap{"doris-observed": {Data: map[string]string{"fe": lost}}},
			}}}}
			m := member{component: &doris.MigrationComponent{Kind: test.kind}, pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: test.pod}}}
			file := []byte(test.file)
			if test.none {
				file = nil
			}
			got := r.cutShort(m, file)
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) || strings.Contains(got, "917331") {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}
