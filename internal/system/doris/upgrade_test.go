package doris

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
)

func TestVersionsAreReadFromTags(t *testing.T) {
	t.Parallel()
	for image, want := range map[string]string{
		"apache/doris:fe-3.0.5":                           "3.0.5",
		"apache/doris:2.1":                                "2.1.0",
		"registry.example.com:5000/doris/be:2.1.7-rc01":   "2.1.7",
		"apache/doris:be-ubuntu-22.04-1.2.8-amd64":        "1.2.8",
		"apache/doris:fe-3.0.5@sha256:0123456789abcdef01": "3.0.5",
		"apache/doris@sha256:3.0.5":                       "",
		"apache/doris":                                    "",
		"registry.example.com:2.15/doris":                 "",
		"apache/doris:latest":                             "",
		"apache/doris:fe-2":                               "",
		"apache/doris:build-20260101.3":                   "",
	} {
		v, known := versionOf(image)
		if got := v.String(); known != (want != "") || known && got != want {
			t.Errorf("%s is read as %s (%t), want %q", image, got, known, want)
		}
	}
}

func FuzzVersionOf(f *testing.F) {
	f.Add("apache/doris:fe-3.0.5")
	f.Add("a:5000/b:1.2@c")
	f.Fuzz(func(t *testing.T, image string) {
		v, known := versionOf(image)
		if !known && v != (version{}) || v.major < 0 || v.major > 9 || v.minor > 99 {
			t.Errorf("%q is read as %v, %t", image, v, known)
		}
	})
}

// versionedCluster runs a version; its database answers.
func versionedCluster(t *testing.T, v string) *world {
	t.Helper()
	w := newWorld(t, strings.NewReplacer("fe-1", "fe-"+v, "be-1", "be-"+v).Replace(threeByThree)).withDatabase()
	w.lives()
	w.db.statements = nil
	return w
}

func TestVersionSteps(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, from, to, allow, refused string }{
		{"a patch", "3.0.5", "3.0.6", "", ""},
		{"a patch back", "3.0.6", "3.0.5", "", ""},
		{"the next minor version", "2.0.15", "2.1.7", "", ""},
		{"the next major version from the last minor one", "2.1.7", "3.0.5", "", ""},
		{"a minor version is left out", "2.0.15", "3.0.5", "", "from version 2.0.15 to 3.0.5 leaves 2.1 out"},
		{"a minor version is left out, and a person wants it", "2.0.15", "3.0.5", meta.AllowVersionSkip, ""},
		{"a minor version back", "3.0.5", "2.1.7", "", "backends run version 3.0.5, and Doris goes back within 3.0 alone"},
		{"a minor version back, and a person wants something else", "3.0.5", "2.1.7", meta.AllowVersionSkip, "backends run version 3.0.5"},
		{"a minor version back, and a person wants it", "3.0.5", "2.1.7", meta.AllowDowngrade, ""},
		{"versions that nobody has heard of, the next", "7.1.0", "7.2.0", "", ""},
		{"versions that nobody has heard of, one left out", "7.1.0", "7.3.0", "", "leaves 7.2 out"},
		{"a tag that names no version", "3.0.5", "ours", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, strings.NewReplacer("fe-1", "fe-"+c.from, "be-1", "be-"+c.from).Replace(smallCluster))
			w.settle()
			if c.allow != "" {
				w.asks(map[string]string{meta.AnnotationAllow: c.allow})
			}
			w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-" + c.to })
			w.settle()
			said := condition(w.dc, meta.ConditionStalled)
			if c.refused != "" {
				if !strings.HasPrefix(said, "True UnsafeChange") || !strings.Contains(said, c.refused) || len(w.evicts) > 0 {
					t.Errorf("%v went; Stalled is %s", w.evicts, said)
				}
				return
			}
			if got := w.image("doris-be-0"); got != "apache/doris:be-"+c.to {
				t.Errorf("the backend has %s; Stalled is %s", got, said)
			}
		})
	}
}

func TestAnUpgradeThatNeverCameUpCanBeTakenBack(t *testing.T) {
	t.Parallel()
	w := versionedCluster(t, "2.1.7")
	w.broken["doris-be-2"] = true
	w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-3.0.5" })
	w.moves(40)
	delete(w.broken, "doris-be-2")
	if got := w.db.settings()["disable_balance"]; got != "false" {
		t.Errorf("the roll has stopped, and disable_balance = %s", got)
	}
	w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-2.1.7" })
	w.lives()
	w.rollEnds("doris-be-2", "doris-be-2")
}

func TestNoTabletsAreMovedDuringAnUpgrade(t *testing.T) {
	t.Parallel()
	w := versionedCluster(t, "2.1.7")
	w.db.settings()["disable_colocate_balance"] = "true" // a user's own
	w.edit(func(s *dorisv1.DorisClusterSpec) {
		s.FeSpec.Image, s.BeSpec.Image = "apache/doris:fe-3.0.5", "apache/doris:be-3.0.5"
	})
	for len(w.evicts) == 0 {
		w.moves(1)
	}
	for _, key := range balancing {
		if got := w.db.settings()[key]; got != "true" {
			t.Errorf("when the first Pod goes %s = %s", key, got)
		}
	}
	for len(w.evicts) < 5 { // the master is the sixth
		w.moves(1)
	}
	if got := w.db.settings()["disable_colocate_balance"]; got != "true" {
		t.Errorf("what a user set is %s", got)
	}
	w.lives()
	w.rollEnds("doris-be-2", "doris-be-1", "doris-be-0", "doris-fe-2", "doris-fe-1", "doris-fe-0")
	for _, key := range balancing {
		if got := w.db.settings()[key]; got != "false" { // the new master has its defaults
			t.Errorf("after the upgrade %s = %s", key, got)
		}
	}
	if text := w.set("doris-fe").Annotations[meta.AnnotationBalanceStopped]; text != "" {
		t.Errorf("a record is left: %s", text)
	}
}

func TestBalancingIsPutOnAgainWhereTheMasterStays(t *testing.T) {
	t.Parallel()
	w := versionedCluster(t, "2.1.7")
	w.db.settings()["disable_colocate_balance"] = "true"
	w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-2.1.8" })
	w.lives()
	w.rollEnds(allBackends...)
	var set []string
	for _, s := range w.db.statements {
		if strings.Contains(s, " = ") {
			set = append(set, s)
		}
	}
	want := []string{"disable_balance = true", "disable_tablet_scheduler = true", "disable_balance = false", "disable_tablet_scheduler = false"}
	if diff := cmp.Diff(want, set); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
}

func TestARestartMovesTabletsAsBefore(t *testing.T) {
	t.Parallel()
	w := versionedCluster(t, "2.1.7")
	w.asks(map[string]string{restartKey(dorisv1.ComponentBE): "2026-05-06T00:00:00Z"})
	w.lives()
	w.rollEnds(allBackends...)
	if slices.ContainsFunc(w.db.statements, func(s string) bool { return strings.Contains(s, " = ") }) {
		t.Errorf("statements: %v", w.db.statements)
	}
}

func TestAnAccountThatMayOnlyChangeMembersIsEnoughForAnUpgrade(t *testing.T) {
	t.Parallel()
	w := versionedCluster(t, "2.1.7")
	w.db.plain = true
	w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-2.1.8" })
	w.lives()
	w.rollEnds(allBackends...)
}
