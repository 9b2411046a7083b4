package doris

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// TestMeanwhile: whoever takes long is not waited for, is not asked twice at a time,
// and wakes those that went on.
func TestMeanwhile(t *testing.T) {
	t.Parallel()
	m, woken := newMeanwhile(), make(chan types.NamespacedName, 10)
	m.patience = 10 * time.Millisecond
	m.wakeBy("", func(name types.NamespacedName) { woken <- name })
	var asked atomic.Int32
	answer := make(chan struct{})
	slow := func(context.Context) { asked.Add(1); <-answer }
	cluster := types.NamespacedName{Namespace: "shop", Name: "doris"}
	for range 3 {
		if m.do(t.Context(), "slow", cluster, slow) {
			t.Error("nobody answered, and it is said to be over")
		}
	}
	if !m.do(t.Context(), "fast", cluster, func(context.Context) {}) {
		t.Error("a fast one is not over")
	}
	close(answer)
	if got := <-woken; got != cluster || asked.Load() != 1 {
		t.Errorf("woken is %v, asked %d times; want the cluster, and once", got, asked.Load())
	}
	m.patience = time.Hour
	if !m.do(t.Context(), "slow", cluster, slow) || asked.Load() != 2 {
		t.Errorf("asked %d times; want it asked anew when it is over", asked.Load())
	}
	select {
	case name := <-woken:
		t.Errorf("%v is woken although it had the answer", name)
	default:
	}
}

// TestMeanwhileWaitsWhereNobodyCanBeWoken is what tests and other callers rely on.
func TestMeanwhileWaitsWhereNobodyCanBeWoken(t *testing.T) {
	t.Parallel()
	m := newMeanwhile()
	m.patience = 0
	m.wakeBy("elsewhere", func(types.NamespacedName) {})
	answer, asked := make(chan struct{}), false
	time.AfterFunc(time.Millisecond, func() { close(answer) })
	over := m.do(t.Context(), "a", types.NamespacedName{Namespace: "shop"}, func(context.Context) { <-answer; asked = true })
	if !over || !asked {
		t.Error("it did not wait")
	}
}

// TestMeanwhileOutlivesTheReconcile: the question goes on, and a panic of it is one of
// the next reconcile and not of the operator.
func TestMeanwhileOutlivesTheReconcile(t *testing.T) {
	t.Parallel()
	m, woken := newMeanwhile(), make(chan types.NamespacedName, 1)
	m.patience = time.Hour
	m.wakeBy("shop", func(name types.NamespacedName) { woken <- name })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	goOn := make(chan struct{})
	cluster := types.NamespacedName{Namespace: "shop", Name: "doris"}
	if m.do(ctx, "a", cluster, func(ctx context.Context) {
		<-goOn
		panic(fmt.Sprint("a fault, and the reconcile: ", ctx.Err()))
	}) {
		t.Error("it waited although the reconcile is over")
	}
	close(goOn)
	<-woken
	defer func() {
		if got := fmt.Sprint(recover()); got != "a fault, and the reconcile: <nil>" {
			t.Errorf("panic is %q", got)
		}
	}()
	m.do(t.Context(), "a", cluster, func(context.Context) {})
	t.Error("the panic got lost")
}
