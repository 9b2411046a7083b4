package stories

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/test/simnode"
)

// sized has three members of each, whose backends ask for memory.
var sized = strings.Replace(three, `"apache/doris:be-2.1.8"`, `"apache/doris:be-2.1.8"
    requests: {memory: 1Gi}`, 1)

// Stories of Pods that are resized in place, and of rolls into which somebody else
// comes.
var (
	resizing = tale{
		name: "memory of 3+3 is raised in place", setup: creates(sized), act: moreMemory, unsettled: hasMemory("2Gi"),
	}
	resizeRefused = tale{
		name: "memory of 3+3 is raised, and a node refuses it", setup: creates(sized), replaced: 1, unsettled: hasMemory("2Gi"),
		act: inTurn(func(_ context.Context, s *scene) error {
			s.nodes.Inject(simnode.Rule{Fault: simnode.FaultResizeRefused, Namespace: s.namespace, Name: "doris-be-1"})
			return nil
		}, moreMemory),
	}
	drained = tale{
		name: "somebody drains a node in the middle of an image change of 3+3", setup: creates(three), unsettled: runs("3.0.5"),
		act: inTurn(newImages, awaitsFirst, drains("doris-be-0")), replaced: 2,
	}
	twoLost = tale{
		name: "two Pods are lost at once in the middle of an image change of 3+3", setup: creates(three), unsettled: runs("3.0.5"),
		act: inTurn(newImages, awaitsFirst, loses("doris-be-0", "doris-fe-1")), replaced: 2,
	}
)

var newImages = edits(func(dc *dorisv1.DorisCluster) {
	dc.Spec.FeSpec.Image, dc.Spec.BeSpec.Image = "apache/doris:fe-3.0.5", "apache/doris:be-3.0.5"
})

var moreMemory = edits(func(dc *dorisv1.DorisCluster) {
	dc.Spec.BeSpec.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Gi")}
})

// hasMemory says which backend does not have what the spec asks for.
func hasMemory(size string) func(context.Context, *scene) string {
	return func(ctx context.Context, s *scene) string {
		if missing := settledCluster(ctx, s); missing != "" {
			return missing
		}
		pods := &corev1.PodList{}
		if err := s.client.List(ctx, pods, client.InNamespace(s.namespace), client.MatchingLabels{dorisv1.LabelComponent: "be"}); err != nil {
			return err.Error()
		}
		for _, p := range pods.Items {
			c := p.Status.ContainerStatuses[0]
			if c.Resources == nil || c.Resources.Requests.Memory().String() != size || c.RestartCount > 0 {
				return p.Name + " does not have its memory, or restarted"
			}
		}
		return ""
	}
}

// awaitsFirst waits until the first backend of a roll is another Pod.
func awaitsFirst(ctx context.Context, s *scene) error {
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		pod := &corev1.Pod{}
		err := s.client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "doris-be-2"}, pod)
		return err == nil && strings.HasSuffix(pod.Spec.Containers[0].Image, "3.0.5"), client.IgnoreNotFound(err)
	})
}

// drains evicts a Pod as whoever drains nodes does: again and again while a budget does
// not let it go.
func drains(name string) func(context.Context, *scene) error {
	return func(ctx context.Context, s *scene) error {
		return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
			err := s.client.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{ObjectMeta: pod.ObjectMeta})
			if apierrors.IsTooManyRequests(err) {
				return false, nil
			}
			return true, client.IgnoreNotFound(err)
		})
	}
}

// loses takes Pods away without asking anybody.
func loses(names ...string) func(context.Context, *scene) error {
	return func(ctx context.Context, s *scene) error {
		for _, name := range names {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
			if err := client.IgnoreNotFound(s.client.Delete(ctx, pod, client.GracePeriodSeconds(0))); err != nil {
				return err
			}
		}
		return nil
	}
}

// TestRollsWhateverFails kills the operator at each write of these stories, and refuses
// each.
func TestRollsWhateverFails(t *testing.T) {
	if !all() {
		t.Skip("FAIRLEAD_FAULT=all runs it")
	}
	s := onStage(t)
	for _, story := range []tale{resizing, resizeRefused, drained, twoLost} {
		t.Run(story.name, func(t *testing.T) {
			reference := s.undisturbed(t, story)
			writes := upTo(1, len(reference.writes))
			s.sweep(t, reference, kills(story, writes...))
			s.sweep(t, reference, answers(story, writes, 409))
		})
	}
}
