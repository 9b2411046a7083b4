package doris

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
)

// dumpsOf counts how often the metadata was written.
func (w *world) dumpsOf() int {
	n := 0
	for _, s := range w.db.statements {
		if s == "dump" {
			n++
		}
	}
	return n
}

func (w *world) upgrades(v string) {
	w.edit(func(s *dorisv1.DorisClusterSpec) {
		s.FeSpec.Image, s.BeSpec.Image = "apache/doris:fe-"+v, "apache/doris:be-"+v
	})
}

var allMembers = append(slices.Clone(allBackends), "doris-fe-2", "doris-fe-1", "doris-fe-0")

func TestMetadataIsWrittenBeforeFrontendsGetAnotherVersion(t *testing.T) {
	t.Parallel()
	w := versionedCluster(t, "2.1.7")
	w.upgrades("3.0.5")
	for len(w.evicts) < 3 {
		w.moves(1)
	}
	if n := w.dumpsOf(); n != 0 {
		t.Errorf("it was written %d times while backends are replaced", n)
	}
	w.lives()
	w.rollEnds(allMembers...)
	if n := w.dumpsOf(); n != 1 {
		t.Errorf("it was written %d times in one upgrade", n)
	}
	want := dumpRecord{For: w.set("doris-fe").Status.UpdateRevision, Pod: "doris-fe-0", File: "/opt/apache-doris/fe/doris-meta/image.4711"}
	got := readDump(w.set("doris-fe"))
	if got.At.IsZero() {
		t.Error("the record does not say when")
	}
	if got.At = (time.Time{}); got != want {
		t.Errorf("the record is %+v, want %+v", got, want)
	}
	w.upgrades("3.0.6")
	w.lives()
	if n := w.dumpsOf(); n != 2 {
		t.Errorf("it was written %d times in two upgrades", n)
	}
}

func TestMetadataIsWrittenForAnotherVersionOfFrontendsAlone(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(w *world){
		"backends alone": func(w *world) {
			w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-2.1.8" })
		},
		"a restart": func(w *world) {
			w.asks(map[string]string{restartKey(dorisv1.ComponentFE): "2026-05-06T00:00:00Z"})
		},
		"the same version from elsewhere": func(w *world) {
			w.edit(func(s *dorisv1.DorisClusterSpec) { s.FeSpec.Image = "mirror.example.com/doris:fe-2.1.7" })
		},
		"nobody wants it": func(w *world) {
			w.edit(func(s *dorisv1.DorisClusterSpec) {
				s.FeSpec.Image, s.Rollout = "apache/doris:fe-2.1.8", &dorisv1.Rollout{MetadataDump: dorisv1.MetadataDumpNever}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := versionedCluster(t, "2.1.7")
			w.db.noDump = errors.New("it is asked for it")
			edit(w)
			w.lives()
			if len(w.evicts) != 3 || w.set("doris-fe").Annotations[meta.AnnotationMetadataDump] != "" {
				t.Errorf("replaced %v, record %+v", w.evicts, readDump(w.set("doris-fe")))
			}
		})
	}
}

func TestNoFrontendGetsAnotherVersionWithoutItsMetadataWritten(t *testing.T) {
	t.Parallel()
	w := versionedCluster(t, "2.1.7")
	w.db.noDump = errors.New("dump failed. No space left on device")
	w.upgrades("3.0.5")
	w.moves(120)
	if diff := len(w.evicts); diff != 3 {
		t.Fatalf("replaced: %v", w.evicts)
	}
	said := condition(w.dc, meta.ConditionReconciling)
	for _, text := range []string{meta.ReasonMetadataNotDumped, "No space left on device", "set spec.rollout.metadataDump to Never"} {
		if !strings.Contains(said, text) {
			t.Errorf("it does not say %q: %s", text, said)
		}
	}
	w.db.noDump = nil // there is room now
	w.lives()
	w.rollEnds(allMembers...)
}

func TestAWayOutOfWritingMetadata(t *testing.T) {
	t.Parallel()
	w := versionedCluster(t, "2.1.7")
	w.db.noDump = errors.New("404")
	w.upgrades("3.0.5")
	w.moves(120)
	w.edit(func(s *dorisv1.DorisClusterSpec) {
		s.Rollout = &dorisv1.Rollout{MetadataDump: dorisv1.MetadataDumpNever}
	})
	w.lives()
	w.rollEnds(allMembers...)
}

func TestMetadataIsWrittenAgainWhereTheAnswerWasLost(t *testing.T) {
	t.Parallel()
	w := versionedCluster(t, "2.1.7")
	w.edit(func(s *dorisv1.DorisClusterSpec) { s.FeSpec.Image = "apache/doris:fe-2.1.8" })
	for w.db.settings()["disable_balance"] != "true" || w.db.settings()["disable_tablet_scheduler"] != "true" {
		w.moves(1)
	}
	w.db.losing = true
	w.lives()
	w.rollEnds("doris-fe-2", "doris-fe-1", "doris-fe-0")
	if n := w.dumpsOf(); n != 2 {
		t.Errorf("it was written %d times", n)
	}
}
