package doris

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
)

// tellsHistory holds that a roll begins in the history with the very write that changes
// the template, or ends there with the one that puts it back, and with no other.
func (w *world) tellsHistory(live, set *appsv1.StatefulSet) {
	w.Helper()
	read := func(set *appsv1.StatefulSet) (out []dorisv1.RollRecord) {
		if text := set.Annotations[meta.AnnotationHistory]; text != "" {
			w.must(json.Unmarshal([]byte(text), &out))
		}
		return out
	}
	// Where somebody took the stamp of the template away, putting it back rolls nothing.
	if _, known := readAccepted(live); !known || stampOf(live) == "" {
		return
	}
	was, is := read(live), read(set)
	// What is under way is not written again: an entry that differs, or has others behind it, is new.
	began := underWay(is) && cmp.Diff(was, is) != ""
	switch changed := stampOf(live) != stampOf(set); {
	case len(is) > keptOfSet:
		w.Errorf("%s remembers %d rolls", set.Name, len(is))
	case changed && len(is) == 0:
		w.Errorf("%s gets another template, and nothing is said of it", set.Name)
	case changed && !began && is[0].Outcome != dorisv1.RollStopped && is[0].Outcome != dorisv1.RollRolledBack:
		w.Errorf("%s gets another template, and the newest that is said is %+v", set.Name, is[0])
	case !changed && began && live.Annotations[meta.AnnotationHistory] != "":
		w.Errorf("%s keeps its template, and a roll is said to begin: %+v", set.Name, is[0])
	}
	for i := 1; i < len(is); i++ {
		if is[i].Outcome == dorisv1.RollUnderWay {
			w.Errorf("%s: two rolls are under way", set.Name)
		}
	}
}

// told is the history in short.
func (w *world) told() []string {
	var out []string
	for _, r := range w.dc.Status.History {
		line := fmt.Sprintf("%s %s %s by %s: %s", r.Component, r.Outcome, r.Cause, strings.Join(r.By, " "), strings.Join(r.Changes, "; "))
		if r.Message != "" {
			line += " (" + r.Message + ")"
		}
		out = append(out, line)
	}
	return out
}

func wroteBy(manager string, at time.Time, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Time: new(metav1.NewTime(at)),
		FieldsV1: metav1.NewFieldsV1(fields),
	}
}

func TestHistoryTellsWhatRolled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, threeByThree)
	w.dc.ManagedFields = []metav1.ManagedFieldsEntry{
		wroteBy("kubectl-create", testTime, `{"f:spec":{"f:beSpec":{"f:image":{}},"f:feSpec":{}}}`),
		wroteBy("kubectl-edit", testTime.Add(time.Hour), `{"f:spec":{"f:feSpec":{"f:image":{}}}}`),
		wroteBy("kubectl-fairlead", testTime.Add(time.Hour), `{"f:metadata":{"f:annotations":{"f:apache.doris.be/restartedAt":{},"f:fairlead.dev/approve":{}}}}`),
	}
	w.settle()
	if got := w.told(); len(got) > 0 {
		t.Fatalf("nothing was rolled, and it tells %v", got)
	}
	w.edit(func(s *dorisv1.DorisClusterSpec) { s.FeSpec.Image = "apache/doris:fe-2" })
	w.settle()
	w.now = w.now.Add(time.Minute)
	w.evicts = nil
	badRoll(t, w)
	w.now = w.now.Add(time.Minute)
	w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-2" })
	w.settle()
	w.now = w.now.Add(time.Minute)
	w.dc.Annotations = map[string]string{dorisv1.AnnotationBERestartedAt: "2026-05-06T08:00:00Z"}
	w.settle()
	w.now = w.now.Add(time.Minute)
	stranger(w, "doris-be", &appsv1.StatefulSet{}, func(s *appsv1.StatefulSet) {
		s.Spec.Template.Annotations[restartKubectl] = "2026-05-06T09:00:00Z"
	})
	w.settle()
	want := []string{
		"be Done user by : kubectl rollout restart at 2026-05-06T09:00:00Z",
		"be Done user by kubectl-fairlead: restart asked for at 2026-05-06T08:00:00Z",
		"be Done user by kubectl-create: beSpec.image: apache/doris:be-1 -> apache/doris:be-2",
		"be Stopped user by kubectl-create: beSpec.image: apache/doris:be-1 -> apache/doris:be-bad (doris-be-2 did not come up (be: ImagePullBackOff))",
		"fe Done user by kubectl-edit: feSpec.image: apache/doris:fe-1 -> apache/doris:fe-2",
	}
	if diff := cmp.Diff(want, w.told()); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	before := w.store.Now().Version
	if w.settle(); w.store.Now().Version != before {
		t.Error("a history that is told costs writes")
	}
}

func TestHistoryOutlivesItsSet(t *testing.T) {
	t.Parallel()
	w := newWorld(t, threeByThree)
	w.settle()
	w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-2" })
	w.settle()
	was := w.told()
	set := object(w, "doris-be", &appsv1.StatefulSet{})
	w.must(w.store.Delete(keyOf(set), set.UID, false))
	w.settle()
	if diff := cmp.Diff(was, w.told()); diff != "" || len(was) != 1 {
		t.Errorf("history of a set that was deleted (-want +got):\n%s", diff)
	}
	if object(w, "doris-be", &appsv1.StatefulSet{}).Annotations[meta.AnnotationHistory] == "" {
		t.Error("the new set does not have it")
	}
	stranger(w, "doris-be", &appsv1.StatefulSet{}, func(s *appsv1.StatefulSet) { delete(s.Annotations, meta.AnnotationHistory) })
	w.settle()
	if diff := cmp.Diff(was, w.told()); diff != "" {
		t.Errorf("history after somebody took it away (-want +got):\n%s", diff)
	}
	for i := range keptOfSet + 1 {
		w.now = w.now.Add(time.Minute)
		w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = fmt.Sprintf("apache/doris:be-x%d", i) })
		w.settle()
	}
	if got := w.told(); len(got) != keptOfSet || !strings.Contains(got[0], "be-x8") {
		t.Errorf("%d are told, the newest is %s", len(got), got[0])
	}
}

// TestHistoryTellsNoSecret changes what may hold one.
func TestHistoryTellsNoSecret(t *testing.T) {
	t.Parallel()
	was := accepted{Spec: dorisv1.DorisClusterSpec{BeSpec: &dorisv1.BeSpec{}}}
	is := accepted{Spec: *was.Spec.DeepCopy()}
	is.Spec.BeSpec.EnvVars = []corev1.EnvVar{{Name: "PASSWORD", Value: "hunter2"}}
	is.Spec.BeSpec.Annotations = map[string]string{"token": "hunter2"}
	is.Spec.BeSpec.Image = "apache/doris:be-2"
	is.Content = map[string]string{"be-conf": "doris-be-conf-1"}
	want := []string{"beSpec.annotations.token", "beSpec.envVars", "beSpec.image: none -> apache/doris:be-2", "ConfigMap be-conf", "rendering 0 -> 1"}
	got := whatChanged(was, is, 0, 1)
	if diff := cmp.Diff(want, got); diff != "" || strings.Contains(fmt.Sprint(got), "hunter2") {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRecordOfARollBeginsOnce(t *testing.T) {
	t.Parallel()
	p := planner{now: testTime}
	one := dorisv1.RollRecord{Component: "be", Outcome: dorisv1.RollUnderWay}
	history := p.begin(p.begin(nil, one), one)
	if len(history) != 2 || history[1].Outcome != dorisv1.RollOvertaken || history[1].Ended == nil || history[0].Outcome != dorisv1.RollUnderWay {
		t.Errorf("%+v", history)
	}
}
