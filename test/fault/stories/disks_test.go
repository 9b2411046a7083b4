package stories

import (
	"context"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
)

// Stories of disks that grow: the simulated nodes play the resizer.
var (
	growth = tale{
		name: "disks of 3+3 grow", setup: creates(strings.Replace(three, "{name: data, ", "{name: data, provisioner: Operator, ", 1)),
		act: enlarges, unsettled: grown,
	}
	madeAgain = tale{
		name: "a set of 3+3 is made again for larger disks", setup: creates(three),
		act: inTurn(enlarges, approves), unsettled: made,
	}
)

var enlarges = edits(func(dc *dorisv1.DorisCluster) {
	dc.Spec.BeSpec.PersistentVolumes[0].PersistentVolumeClaimSpec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
})

// grown says which claim of the backends is not as large as the spec wants it.
func grown(ctx context.Context, s *scene) string {
	if missing := carriedOut(ctx, s); missing != "" {
		return missing
	}
	claims := &corev1.PersistentVolumeClaimList{}
	if err := s.client.List(ctx, claims, client.InNamespace(s.namespace)); err != nil {
		return err.Error()
	}
	for _, c := range claims.Items {
		if strings.HasPrefix(c.Name, "data-") && c.Status.Capacity.Storage().String() != "2Gi" {
			return c.Name + " has " + c.Status.Capacity.Storage().String()
		}
	}
	return ""
}

// made says what is missing until the set of the backends is made again.
func made(ctx context.Context, s *scene) string {
	if missing := grown(ctx, s); missing != "" {
		return missing
	}
	set := &appsv1.StatefulSet{}
	if err := s.client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "doris-be"}, set); err != nil {
		return err.Error()
	}
	if size := set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage().String(); size != "2Gi" {
		return "the set makes claims of " + size
	}
	return ""
}

// TestDisksGrowWhateverFails kills the operator, and refuses writes, at each write of
// the growth of disks.
func TestDisksGrowWhateverFails(t *testing.T) {
	s := onStage(t)
	for _, story := range []tale{growth, madeAgain} {
		t.Run(story.name, func(t *testing.T) {
			reference := s.undisturbed(t, story)
			writes := upTo(1, len(reference.writes))
			if !all() { // a third of them, with the last
				writes = slices.DeleteFunc(writes, func(n int) bool { return (len(reference.writes)-n)%3 != 0 })
			}
			s.sweep(t, reference, kills(story, writes...))
			if all() {
				s.sweep(t, reference, answers(story, writes, 409, 503))
				s.sweep(t, reference, blinds(story, writes))
			}
		})
	}
}
