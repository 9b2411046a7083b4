package stories

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/test/story"
)

// fakeRevision makes of the newest rendering one that does not exist.
func fakeRevision(set *appsv1.StatefulSet) {
	spec := &set.Spec.Template.Spec
	spec.TerminationGracePeriodSeconds = new(int64(77))
	spec.Containers[0].ReadinessProbe.PeriodSeconds = 6
}

// TestNewerRevisionIsOffered upgrades the operator to a build with one more
// revision of the rendering, and goes back: nothing moves. A person accepts it
// for one component; then its Pods follow, and no others. A build that does not
// know that revision keeps the set as it is.
func TestNewerRevisionIsOffered(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	op := s.operate()
	names := s.samples()
	for _, name := range names {
		s.settled(name)
	}
	s.quiet(time.Second)
	before, objects := s.identities(), s.versions()
	change := func(what string, future bool) {
		s.Helper()
		mark := s.mark()
		op.end(syscall.SIGTERM)
		op.settings.Future = future
		op.start()
		time.Sleep(3 * time.Second) // what a new operator does, it has done by now
		s.quiet(time.Second)
		tally, err := s.requests().Since(mark, s.namespace)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %s", what, tally.Summary())
		if tally.ObjectWrites > 0 || tally.StatusWrites > len(names) {
			t.Errorf("%s wrote:\n%s", what, tally)
		}
		if diff := cmp.Diff(before, s.identities()); diff != "" {
			t.Errorf("%s: Pods (-before +after):\n%s", what, diff)
		}
		if diff := cmp.Diff(objects, s.versions()); diff != "" {
			t.Errorf("%s: objects (-before +after):\n%s", what, diff)
		}
	}
	change("a restart", false)
	change("the upgrade", true)
	for _, name := range names {
		s.says(name, meta.ConditionChangePending, metav1.ConditionTrue, "terminationGracePeriodSeconds")
		s.says(name, meta.ConditionReady, metav1.ConditionTrue)
	}
	change("a restart of the new version", true)
	change("the downgrade", false)
	change("the upgrade again", true)
	acceptRevision(s, op, names)
}

func acceptRevision(s *scene, op *process, names []string) {
	const name = "stored"
	future := s.present().WithFuture(fakeRevision)
	digest := s.digest(s.plannedBy(future, name), "StatefulSet/"+name+"-be", plan.CauseRevision)
	before := len(s.history.Went())
	s.approve(name, digest)
	s.wentSoFar(before + 3)
	s.settled(name)
	s.quiet(time.Second)
	if diff := cmp.Diff([]string{name + "-be-2", name + "-be-1", name + "-be-0"}, s.history.Went()[before:]); diff != "" {
		s.Errorf("Pods that went (-want +got):\n%s", diff)
	}
	set := s.set(name + "-be")
	if set.Annotations[meta.AnnotationRevision] != "2" || *set.Spec.Template.Spec.TerminationGracePeriodSeconds != 77 {
		s.Errorf("revision %s, %d s of grace", set.Annotations[meta.AnnotationRevision], *set.Spec.Template.Spec.TerminationGracePeriodSeconds)
	}
	pods, sets := s.identities(), s.workloads()
	op.end(syscall.SIGTERM)
	op.settings.Future = false
	op.start()
	s.says(name, meta.ConditionFullySupported, metav1.ConditionFalse, name+"-be", "newer version")
	s.edit(name, func(dc *dorisv1.DorisCluster) { dc.Spec.BeSpec.Image = newBackend })
	s.quiet(2 * time.Second)
	if diff := cmp.Diff(pods, s.identities()); diff != "" {
		s.Errorf("the old version replaced Pods (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(sets, s.workloads()); diff != "" {
		s.Errorf("the old version changed sets (-before +after):\n%s", diff)
	}
	s.edit(name, func(dc *dorisv1.DorisCluster) { dc.Spec.BeSpec.Image = "apache/doris:be-2.1.8" })
	op.end(syscall.SIGTERM)
	op.settings.Future = true
	op.start()
	for _, n := range names {
		s.settled(n)
	}
	s.quiet(time.Second)
	if diff := cmp.Diff(pods, s.identities()); diff != "" {
		s.Errorf("the new version replaced Pods when it was back (-before +after):\n%s", diff)
	}
}

// samples creates our own sample manifests and returns the names of the clusters.
func (s *scene) samples() []string {
	s.Helper()
	files, err := filepath.Glob("testdata/samples/*.yaml")
	if err != nil || len(files) == 0 {
		s.Fatalf("no samples: %v", err)
	}
	var names []string
	for _, file := range files {
		text := readFile(s.T, file)
		for _, u := range story.Documents(text) {
			if u.GetKind() == dorisv1.Kind {
				names = append(names, u.GetName())
			}
		}
		s.create(strings.TrimSpace(text))
	}
	return names
}
