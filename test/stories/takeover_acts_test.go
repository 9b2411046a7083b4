package stories

import (
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/test/simnode"
)

// halfRolled is a roll of the other operator that stops at its first Pod.
func halfRolled() afterwards {
	var mend func()
	return afterwards{
		name: "a roll is half done at the takeover",
		before: func(s *scene) {
			mend = s.nodes.Inject(simnode.Rule{Fault: simnode.FaultNeverReady, Namespace: s.namespace, Image: newBackend})
			newBackendImage(s)
			changeAs(s, legacyManager, "doris-be", &appsv1.StatefulSet{}, func(set *appsv1.StatefulSet) {
				for _, list := range [][]corev1.Container{set.Spec.Template.Spec.InitContainers, set.Spec.Template.Spec.Containers} {
					for i := range list {
						list[i].Image = newBackend
					}
				}
			})
			s.eventually("the first Pod follows", func() string {
				for _, p := range s.pods("be") {
					if p.Spec.Containers[0].Image == newBackend {
						return ""
					}
				}
				return "none does"
			})
			s.Cleanup(mend)
		},
		then: func(s *scene) {
			mend()
			s.serves()
			s.stays("the other Pod is held", time.Second, func() string {
				if n := s.history.Made()["doris-be-0"]; n != 1 {
					return "it was made again"
				}
				return ""
			})
			s.approve("doris", s.digest(s.plannedBy(s.present(), "doris"), "Pod/doris-be-0", plan.CauseRevision))
		},
		went: []string{"doris-be-0"},
	}
}

// rolledByController waits until the StatefulSet controller has replaced all.
func rolledByController(s *scene) {
	s.eventually("all Pods follow the template", func() string {
		set := backends(s)
		if set.Status.ObservedGeneration != set.Generation || set.Status.CurrentRevision != set.Status.UpdateRevision {
			return "they do not"
		}
		return ""
	})
	s.serves()
}

// madeAgain holds that a set that was deleted is again what it was.
func madeAgain(s *scene) {
	set := backends(s)
	if set.Annotations[meta.AnnotationRevision] != "0" || set.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType {
		s.Errorf("annotations %v, strategy %v", set.Annotations, set.Spec.UpdateStrategy)
	}
	if got := variables(set); !slices.Equal(got["USER"], []string{"root"}) || !slices.Equal(got["A"], []string{"a"}) {
		s.Errorf("another rendering: %v", got)
	}
	if n := len(set.Spec.VolumeClaimTemplates); n == 0 {
		s.Error("the claims are gone from the set")
	}
}

func (s *scene) deleteSet(how metav1.DeletionPropagation) {
	s.Helper()
	set := backends(s)
	if err := s.client.Delete(s.Context(), set, client.PropagationPolicy(how)); err != nil {
		s.Fatal(err)
	}
	s.eventually("the set is another one", func() string {
		list := &appsv1.StatefulSetList{}
		for _, o := range s.list(list) {
			if o.GetName() == set.Name && o.GetUID() != set.UID {
				return ""
			}
		}
		return "it is not there, or still the old one"
	})
}

// wentSoFar waits until so many Pods have gone.
func (s *scene) wentSoFar(n int) {
	s.Helper()
	s.eventually("Pods go", func() string {
		if went := s.history.Went(); len(went) < n {
			return strings.Join(went, " ") + " went"
		}
		return ""
	})
}
