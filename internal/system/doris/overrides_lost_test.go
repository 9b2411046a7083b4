package doris

import (
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/api/meta"
)

// TestTornFileOfAFrontend holds that a frontend whose file was cut short when it was killed
// is named with the settings that it had, and nobody else; and what ends that.
func TestTornFileOfAFrontend(t *testing.T) {
	t.Parallel()
	const slow, secret = "qe_slow_log_ms", "917331"
	for name, test := range map[string]struct {
		// file is what the frontend finds when it starts again: none where it is empty.
		file string
		// anew has another process of the operator look.
		anew bool
		want []string
	}{
		"whole":                           {file: secret},
		"empty":                           {want: []string{"doris-fe-0: " + slow, "fe_custom.conf", "empty or cut short", "not in force"}},
		"empty, and another operator":     {anew: true, want: []string{"doris-fe-0: " + slow, "not in force"}},
		"cut in the middle of the value":  {file: secret[:2], want: []string{"doris-fe-0: " + slow, "another value"}},
		"so, and another operator: whole": {file: secret[:2], anew: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, d := polledWorld(t)
			for pod, key := range map[string]string{"doris-fe-0": slow, "doris-be-0": "max_tablet_version_num"} {
				w.nodes.procs[pod].values[key] = secret
			}
			w.later(2 * askEvery)
			if test.anew {
				w.system = New(testEngine).Reaching(d, func() time.Time { return w.now })
			}
			w.nodes.restart(w, "doris-fe-0")
			if test.file != "" {
				w.nodes.procs["doris-fe-0"].values[slow] = test.file
			}
			w.kubelet()
			w.later(2 * askEvery)
			lost := func() string { return condition(w.dc, ConditionRuntimeConfigLost) }
			got := lost()
			if (got == "") != (len(test.want) == 0) || strings.Contains(got, "doris-be-0") {
				t.Fatalf("%s is %q", ConditionRuntimeConfigLost, got)
			}
			for _, part := range test.want {
				if !strings.Contains(got, part) {
					t.Errorf("%s does not say %q: %q", ConditionRuntimeConfigLost, part, got)
				}
			}
			if strings.Contains(got, secret[:2]+" ") || strings.Contains(got, secret) {
				t.Errorf("it tells a value: %q", got)
			}
			if got == "" {
				return
			}
			w.acknowledged(got, lost)
			w.nodes.procs["doris-fe-0"].values[slow] = secret
			w.later(2 * askEvery)
			if got := lost(); got != "" {
				t.Errorf("it was set again, and %s is %q", ConditionRuntimeConfigLost, got)
			}
		})
	}
}

// acknowledged has a person say that it is known what was lost. What is no time, or one to
// come, counts for nothing.
func (w *world) acknowledged(said string, lost func() string) {
	w.Helper()
	_, known, _ := strings.Cut(said, meta.AnnotationLostSettingsKnown+"=")
	says := func(text string) {
		w.dc.Annotations[meta.AnnotationLostSettingsKnown] = text
		w.settle()
	}
	for text, want := range map[string]string{
		"yes": "no time",
		w.now.Add(time.Hour).UTC().Format(time.RFC3339): "to come",
		w.now.Add(-24 * time.Hour).Format(time.RFC3339): "doris-fe-0",
	} {
		if says(text); !strings.Contains(lost(), want) {
			w.Errorf("%q is written, and %s is %q", text, ConditionRuntimeConfigLost, lost())
		}
	}
	if says(known); lost() != "" {
		w.Errorf("%q is written, and %s is %q", known, ConditionRuntimeConfigLost, lost())
	}
	says("")
	if lost() == "" {
		w.Errorf("the annotation is gone, and nothing is said")
	}
}
