package stories

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// TestConsent tells how consent is given, refused and used up. The cluster is one
// of another operator, so that our own rendering is offered for each of its sets,
// and its backends lose their data when they are replaced.
func TestConsent(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.legacy(strings.Replace(three, "/opt/apache-doris/be/storage", "/opt/apache-doris/be/elsewhere", 1))
	op := s.operate()
	s.takenOver("doris")
	for _, c := range []struct {
		name string
		do   func(*scene, *process)
	}{
		{"a wrong digest does nothing and is named", wrongConsent},
		{"consent that is taken back before anybody acted on it changes nothing", consentTakenBack},
		{"the offers for two sets are apart", offersApart},
		{"consent is used up by what it was for", consentUsedUp},
	} {
		if t.Failed() {
			return
		}
		began := time.Now()
		t.Logf("%s", c.name)
		c.do(s, op)
		t.Logf("  took %s", time.Since(began).Round(100*time.Millisecond))
	}
}

// nothingGoes holds that no Pod goes while something is done and for a while after.
func (s *scene) nothingGoes(what string, do func()) {
	s.Helper()
	before := len(s.history.Went())
	do()
	s.quiet(time.Second)
	if went := s.history.Went()[before:]; len(went) > 0 {
		s.Errorf("%s: %v went", what, went)
	}
}

func wrongConsent(s *scene, _ *process) {
	before := s.workloads()
	mark := s.mark()
	s.nothingGoes("a wrong digest", func() {
		s.approve("doris", "0123456789ab")
		s.eventually("it is named", func() string {
			if !strings.Contains(jsonOf(s.T, s.plannedBy(s.present(), "doris").Findings), meta.ReasonStaleApproval) {
				return "the plan does not name it"
			}
			return ""
		})
	})
	if diff := cmp.Diff(before, s.workloads()); diff != "" {
		s.Errorf("the sets changed (-before +after):\n%s", diff)
	}
	if n := s.writes(mark); n > 1 {
		s.Errorf("%d writes; one of the status is enough", n)
	}
	s.eventually("it is said", func() string {
		said := jsonOf(s.T, s.doris("doris").Status)
		for _, o := range s.list(&corev1.EventList{}) {
			said += o.(*corev1.Event).Message
		}
		if !strings.Contains(said, "0123456789ab") {
			return "neither the status nor an event names it"
		}
		return ""
	})
	s.approve("doris")
}

// consentTakenBack gives consent while the operator is paused, and while it is
// down, and takes it back.
func consentTakenBack(s *scene, op *process) {
	before := s.workloads()
	digest := s.digest(s.plannedBy(s.present(), "doris"), "StatefulSet/doris-fe", plan.CauseRevision)
	s.nothingGoes("paused", func() {
		s.annotate("doris", meta.AnnotationPaused, "true")
		s.approve("doris", digest)
		s.quiet(time.Second)
		s.approve("doris")
		s.annotate("doris", meta.AnnotationPaused, "")
	})
	s.nothingGoes("down", func() {
		op.end(syscall.SIGKILL)
		s.approve("doris", digest)
		s.approve("doris")
		op.start()
	})
	if diff := cmp.Diff(before, s.workloads()); diff != "" {
		s.Errorf("the sets changed (-before +after):\n%s", diff)
	}
}

func offersApart(s *scene, _ *process) {
	p := s.plannedBy(s.present(), "doris")
	fe, be := s.digest(p, "StatefulSet/doris-fe", plan.CauseRevision), s.digest(p, "StatefulSet/doris-be", plan.CauseRevision)
	if fe == be {
		s.Fatalf("both offers have the digest %s", fe)
	}
	before := len(s.history.Went())
	s.approve("doris", fe)
	s.wentSoFar(before + 3)
	s.settled("doris")
	s.quiet(time.Second)
	if diff := cmp.Diff([]string{"doris-fe-2", "doris-fe-1", "doris-fe-0"}, s.history.Went()[before:]); diff != "" {
		s.Errorf("Pods that went (-want +got):\n%s", diff)
	}
	if got := []string{s.set("doris-fe").Annotations[meta.AnnotationRevision], s.set("doris-be").Annotations[meta.AnnotationRevision]}; !slices.Equal(got, []string{"1", "0"}) {
		s.Errorf("revisions %v", got)
	}
	if got := s.digest(s.plannedBy(s.present(), "doris"), "StatefulSet/doris-be", plan.CauseRevision); got != be {
		s.Errorf("the offer for the backends was %s and is %s", be, got)
	}
}

// consentUsedUp makes an edit that loses data, consents, makes it undone with
// another consent, and makes the same edit again: the first consent, which is
// still there, does not count for it.
func consentUsedUp(s *scene, _ *process) {
	edit := func(image string) string {
		s.edit("doris", func(dc *dorisv1.DorisCluster) { dc.Spec.BeSpec.Image = image })
		s.says("doris", meta.ConditionChangePending, metav1.ConditionTrue, "doris-be", "image")
		p := s.plannedBy(s.present(), "doris")
		digest := s.digest(p, "StatefulSet/doris-be", plan.CauseUser)
		for _, c := range p.Held() {
			if c.Approve == digest && c.Effect != plan.EffectDataLoss {
				s.Errorf("held is %+v", c)
			}
		}
		return digest
	}
	roll := func(digests ...string) {
		before := len(s.history.Went())
		s.approve("doris", digests...)
		s.wentSoFar(before + 3)
		s.settled("doris")
		s.quiet(time.Second)
		if diff := cmp.Diff([]string{"doris-be-2", "doris-be-1", "doris-be-0"}, s.history.Went()[before:], cmpopts.EquateEmpty()); diff != "" {
			s.Errorf("Pods that went (-want +got):\n%s", diff)
		}
	}
	first := edit(newBackend)
	roll(first)
	second := edit("apache/doris:be-2.1.8")
	roll(first, second)
	third := ""
	s.nothingGoes("the same edit again, with the old consents", func() { third = edit(newBackend) })
	if slices.Contains([]string{first, second}, third) {
		s.Errorf("the same edit has the old digest %s", third)
	}
	roll(third)
}
