package event

import (
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-dev/fairlead/internal/plan"
)

func TestEventsAreWhatTheAPIServerTakes(t *testing.T) {
	o := plan.Ref{Kind: "Pod", Namespace: "ns", Name: "fe-0"}
	long := strings.Repeat("é", 2000)
	for name, e := range map[string]Event{
		"created": Created(o), "updated": Updated(o, long), "deleted": Deleted(o, long), "evicted": Evicted(o, long),
		"called": Called(o, long), "ready": Ready(), "stalled": Stalled("Reason", long), "held": ChangesHeld(long),
	} {
		t.Run(name, func(t *testing.T) {
			if len(e.Message) > 1024 || !utf8.ValidString(e.Message) {
				t.Errorf("message of %d bytes, valid UTF-8: %v", len(e.Message), utf8.ValidString(e.Message))
			}
			wantType := corev1.EventTypeNormal
			if name == "stalled" {
				wantType = corev1.EventTypeWarning
			}
			if e.Type != wantType || e.Reason == "" || e.Action == "" || e.Message == "" {
				t.Errorf("event = %+v", e)
			}
		})
	}
	got := Updated(o, "update spec.x")
	if got.Message != "Pod/fe-0: update spec.x" || got.Related != o {
		t.Errorf("event = %+v", got)
	}
}

func TestWhatIsMadeAtOnceIsOneEventAboutTheLastOfIt(t *testing.T) {
	service, set, pod := plan.Ref{Kind: "Service", Name: "a"}, plan.Ref{Kind: "StatefulSet", Name: "a-fe"}, plan.Ref{Kind: "Pod", Name: "p"}
	got := Together([]Event{Created(service), Created(set), Evicted(pod, "old"), Created(service)})
	want := []Event{
		normal("Created", "Create", "created Service/a, StatefulSet/a-fe").on(set),
		normal("Evicted", "Evict", "Pod/p: old").on(pod),
		normal("Created", "Create", "created Service/a").on(service),
	}
	if len(got) != len(want) {
		t.Fatalf("%d events, want %d: %+v", len(got), len(want), got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("event %d = %+v, want %+v", i, got[i], want[i])
		}
	}
	many := make([]Event, 200)
	for i := range many {
		many[i] = Created(plan.Ref{Kind: "Service", Name: "with-a-long-name"})
	}
	if got := Together(many); len(got) != 1 || len(got[0].Message) > longest {
		t.Errorf("%d events, the first of %d bytes; want one of at most %d", len(got), len(got[0].Message), longest)
	}
}
