package apply

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/internal/diff"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// book is a Ledger with a clock that a test moves.
type book struct {
	*Ledger
	t      *testing.T
	engine *diff.Engine
	clock  time.Time
	owner  client.Object
}

func newBook(t *testing.T) *book {
	t.Helper()
	b := &book{
		t: t, engine: diff.New(clientgoscheme.Scheme), clock: time.Unix(1e6, 0),
		owner: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "owner"}},
	}
	b.Ledger = NewLedger(func() time.Time { return b.clock })
	return b
}

func step(content, live string) plan.Apply {
	return plan.Apply{
		Object:  &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "o"}, Data: map[string]string{"k": content}},
		Manager: "m", Live: live, Reason: "update data.k",
	}
}

// send sends an intent for a live version and notes the version that came of
// it; it returns how long to wait when it may not be sent.
func (b *book) send(content, live, after string) time.Duration {
	b.t.Helper()
	r, err := b.Prepare(b.engine, b.owner, step(content, live))
	if contested, ok := errors.AsType[*ContestedError](err); ok {
		if contested.RetryAfter <= 0 {
			b.t.Errorf("contested, and never to be tried again: %v", err)
		}
		return contested.RetryAfter
	}
	if err != nil {
		b.t.Fatal(err)
	}
	b.Done(r, after)
	return 0
}

func (b *book) expect(what string, got, want time.Duration) {
	b.t.Helper()
	if got != want {
		b.t.Errorf("%s: wait %s, want %s", what, got, want)
	}
}

func TestLedgerSendsOneIntentOnceForOneVersion(t *testing.T) {
	b := newBook(t)
	b.expect("creation", b.send("a", "", "1"), 0)
	b.expect("same intent, the version that came of it", b.send("a", "1", ""), longestPause)
	b.expect("another intent", b.send("b", "1", "2"), 0)
	b.expect("the first intent again, for a newer version", b.send("a", "2", "3"), 0)
	b.expect("same intent for the version it was decided on", b.send("a", "2", ""), longestPause)
	b.clock = b.clock.Add(longestPause - time.Second)
	b.expect("shortly before the pause ends", b.send("a", "3", ""), time.Second)
	b.clock = b.clock.Add(time.Second)
	b.expect("after the pause, to see whether it lasts now", b.send("a", "3", "4"), 0)
	b.expect("and then there is quiet again", b.send("a", "4", ""), longestPause)
}

func TestLedgerPausesLongerWhileAnIntentIsUndone(t *testing.T) {
	b := newBook(t)
	versions, version := []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15"}, 0
	next := func() (live, after string) { // somebody else wrote in between
		live, after = versions[version], versions[version]+"-ours"
		version++
		return live, after
	}
	pauses := []time.Duration{0, 0, 0, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}
	for i, want := range pauses {
		live, after := next()
		got := b.send("a", live, after)
		b.expect(versions[i], got, want)
		if got > 0 {
			b.clock = b.clock.Add(got)
			b.expect(versions[i]+" after its pause", b.send("a", live, after), 0)
		}
	}
	b.expect("a new intent is sent at once", b.send("b", "20", "21"), 0)
	b.expect("and undone it is sent promptly", b.send("b", "22", "23"), 0)
}

func TestLedgerForgetsOldQuarrels(t *testing.T) {
	b := newBook(t)
	for _, v := range []string{"1", "3", "5"} {
		b.expect("version "+v, b.send("a", v, v+"-ours"), 0)
	}
	b.clock = b.clock.Add(3 * longestPause)
	for _, v := range []string{"7", "9", "11"} {
		b.expect("long after, version "+v, b.send("a", v, v+"-ours"), 0)
	}
}

func TestPausesAreBounded(t *testing.T) {
	for again := range 100 {
		if p := (sent{again: again}).pause(); p < 0 || p > longestPause {
			t.Fatalf("pause %s after %d times", p, again)
		}
	}
	if p := (sent{again: 99}).pause(); p != longestPause {
		t.Errorf("pause %s, want the longest", p)
	}
}

func TestLedgerKnowsObjectsManagersAndOwnersApart(t *testing.T) {
	b := newBook(t)
	b.send("a", "1", "2")
	other := step("a", "2")
	other.Object.SetName("other")
	if _, err := b.Prepare(b.engine, b.owner, other); err != nil {
		t.Errorf("another object: %v", err)
	}
	other = step("a", "2")
	other.Manager = "somebody else"
	if _, err := b.Prepare(b.engine, b.owner, other); err != nil {
		t.Errorf("another manager: %v", err)
	}
	stranger := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "stranger"}}
	if _, err := b.Prepare(b.engine, stranger, step("a", "2")); err != nil {
		t.Errorf("another owner: %v", err)
	}
	b.Forget(client.ObjectKeyFromObject(b.owner))
	b.expect("after the owner is gone", b.send("a", "2", "3"), 0)
	b.Forget(client.ObjectKeyFromObject(b.owner))
	if len(b.sent) != 0 {
		t.Errorf("kept: %v", b.sent)
	}
}

func TestLedgerDoesNotCountWhatFailed(t *testing.T) {
	b := newBook(t)
	for range 5 { // prepared, and never done
		if _, err := b.Prepare(b.engine, b.owner, step("a", "1")); err != nil {
			t.Fatal(err)
		}
	}
}
