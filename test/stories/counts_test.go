package stories

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/test/cluster/clustertest"
	"github.com/fairlead-dev/fairlead/test/story"
)

// writeBudget is what a cluster of one frontend and one backend may cost in
// object and status writes, from nothing to settled: one of them notes the policy for
// settings that are changed at run time.
const writeBudget = 11

// TestASmallClusterCostsFewWrites counts by the API server's own audit log.
func TestASmallClusterCostsFewWrites(t *testing.T) {
	s := newScene(t)
	s.operate()
	s.quiet(time.Second)
	mark := s.mark()
	s.create(small)
	s.settled("doris")
	s.quiet(2 * time.Second)
	tally, err := s.requests().Since(mark)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("one frontend and one backend: %s", tally.Summary())
	if tally.Writes() > writeBudget {
		t.Errorf("%d object and status writes, the budget is %d:\n%s", tally.Writes(), writeBudget, tally)
	}
	if tally.Writes() == 0 {
		t.Error("nothing was counted at all")
	}
}

// TestIdleClustersCostNothing holds 50 converged clusters against the noise of
// others: ConfigMaps and Pods that change 20 times a second, in the same
// namespaces and elsewhere.
func TestIdleClustersCostNothing(t *testing.T) {
	const clusters, idle = 50, 30 * time.Second
	s := newScene(t)
	other := clustertest.Namespace(t)
	s.operate(func(o *settings) { o.Namespaces = nil })
	for i := range clusters {
		s.create(strings.Replace(small, "name: doris", fmt.Sprintf("name: doris-%d", i), 1))
	}
	s.eventually("all are settled", func() string {
		list := &dorisv1.DorisClusterList{}
		if err := s.client.List(t.Context(), list, client.InNamespace(s.namespace)); err != nil {
			return err.Error()
		}
		for i := range list.Items {
			if why := story.Unsettled(&list.Items[i]); why != "" {
				return list.Items[i].Name + ": " + why
			}
		}
		return ""
	})
	s.quiet(13 * time.Second) // an event that could not be written is tried again after ten seconds
	stop := s.noise(s.namespace, other)
	mark := s.mark()
	time.Sleep(idle) // the time that is measured
	tally, err := s.requests().Since(mark)
	if err != nil {
		t.Fatal(err)
	}
	changes := stop()
	t.Logf("%d clusters in %s, while others made %d changes: %s", clusters, idle, changes, tally.Summary())
	if tally.Restless() > 0 {
		t.Errorf("an idle operator made requests:\n%s", tally)
	}
	if changes < int(idle/time.Second)*20/2 {
		t.Errorf("others made only %d changes: the noise was too quiet to mean anything", changes)
	}
}

// noise changes unrelated ConfigMaps and Pods 20 times a second until it is
// stopped, which tells how many changes it made.
func (s *scene) noise(namespaces ...string) (stop func() int) {
	s.Helper()
	var objects []client.Object
	for _, ns := range namespaces {
		objects = append(objects,
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "noise"}},
			&corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "noise"},
				Spec: corev1.PodSpec{
					SchedulingGates: []corev1.PodSchedulingGate{{Name: "test/never"}},
					Containers:      []corev1.Container{{Name: "a", Image: "a"}},
				},
			})
	}
	for _, o := range objects {
		if err := s.client.Create(s.Context(), o); err != nil {
			s.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(s.Context())
	var done sync.WaitGroup
	changes := 0
	done.Go(func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			o := objects[changes%len(objects)]
			patch := fmt.Sprintf(`{"metadata":{"annotations":{"noise":"%d"}}}`, changes)
			if err := s.client.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
				return
			}
			changes++
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	})
	return func() int {
		cancel()
		done.Wait()
		return changes
	}
}
