package stories

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/system/doris"
)

// legacy makes a cluster as the existing operator would have, by another
// manager and without anything of ours, and waits until its Pods serve. Edits are
// of its sets.
func legacy(manifest string, edits ...func(*appsv1.StatefulSet)) func(context.Context, *scene) error {
	return func(ctx context.Context, s *scene) error {
		if err := creates(manifest)(ctx, s); err != nil {
			return err
		}
		dc, err := s.doris(ctx)
		if err != nil {
			return err
		}
		objects, _ := doris.Desired(dc, doris.Inputs{Revision: 0})
		for i, c := range objects.Components {
			set := c.StatefulSet.DeepCopy()
			set.Spec.Replicas = &c.Replicas
			set.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType}
			set.Spec.Template.Annotations = notOurs(set.Spec.Template.Annotations)
			for _, edit := range edits {
				edit(set)
			}
			made := []client.Object{set}
			for _, service := range c.Services {
				made = append(made, service.DeepCopy())
			}
			for _, o := range made {
				o.SetAnnotations(notOurs(o.GetAnnotations()))
				if err := s.client.Create(ctx, o, client.FieldOwner("manager")); err != nil {
					return fmt.Errorf("legacy %T %s: %w", o, o.GetName(), err)
				}
			}
			if err := s.serves(ctx, i+1); err != nil {
				return err
			}
		}
		return nil
	}
}

func notOurs(annotations map[string]string) map[string]string {
	out := maps.Clone(annotations)
	maps.DeleteFunc(out, func(k, _ string) bool { return strings.HasPrefix(k, meta.Prefix) })
	return out
}

// serves waits until all Pods of so many sets are ready.
func (s *scene) serves(ctx context.Context, sets int) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		list := &appsv1.StatefulSetList{}
		if err := s.client.List(ctx, list, client.InNamespace(s.namespace)); err != nil {
			return err
		}
		ready := 0
		for _, set := range list.Items {
			if set.Status.ReadyReplicas == *set.Spec.Replicas {
				ready++
			}
		}
		if ready == sets {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d of %d sets are ready after %s", ready, sets, patience)
		}
	}
}

// takeover begins with a cluster that another operator made; what happens is
// that ours comes.
var takeover = tale{
	name: "takeover of 3+3", before: legacy(three), unsettled: settledCluster,
	act: func(context.Context, *scene) error { return nil },
}

// takeoverAndScale goes on after that: a set that was taken over grows, and no
// Pod of it is replaced.
var takeoverAndScale = tale{
	name: "scale-out of 3+3 that was taken over", before: legacy(three), unsettled: settledCluster,
	setup: func(context.Context, *scene) error { return nil },
	act:   edits(func(dc *dorisv1.DorisCluster) { dc.Spec.BeSpec.Replicas = new(int32(4)) }),
}
