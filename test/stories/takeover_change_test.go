package stories

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
)

const kubectlRestart = "kubectl.kubernetes.io/restartedAt"

// afterwards is what happens to a cluster of another operator around the takeover.
type afterwards struct {
	name string
	// made alters a set before it is made; before happens when its Pods serve and
	// our operator is not there, and then when it has taken over.
	made   func(*appsv1.StatefulSet)
	before func(*scene)
	then   func(*scene)
	// expect waits for what is to come of it; nil where nothing is.
	expect func(*scene)
	// went are the Pods that go after the takeover, in order.
	went []string
	// check holds what is true in the end.
	check func(*scene)
	// breaks says that the story itself breaks a promise.
	breaks bool
}

var backendsFollow = []string{"doris-be-1", "doris-be-0"}

func backends(s *scene) *appsv1.StatefulSet { return s.set("doris-be") }

func variables(set *appsv1.StatefulSet) map[string][]string {
	out := map[string][]string{}
	for _, e := range set.Spec.Template.Spec.Containers[0].Env {
		out[e.Name] = append(out[e.Name], e.Value)
	}
	return out
}

func newBackendImage(s *scene) {
	s.edit("doris", func(dc *dorisv1.DorisCluster) { dc.Spec.BeSpec.Image = newBackend })
}

func annotated(key, value string) func(*scene) {
	return func(s *scene) {
		changeAs(s, "kubectl-rollout", "doris-be", &appsv1.StatefulSet{}, func(set *appsv1.StatefulSet) {
			if set.Spec.Template.Annotations == nil {
				set.Spec.Template.Annotations = map[string]string{}
			}
			set.Spec.Template.Annotations[key] = value
		})
	}
}

// replicasStay holds that the backends have so many Pods and that nobody fights
// over it.
func replicasStay(n int32) func(*scene) {
	return func(s *scene) {
		s.Helper()
		if got := *backends(s).Spec.Replicas; got != n {
			s.Errorf("%d replicas, want %d", got, n)
		}
	}
}

func findsInPlan(texts ...string) func(*scene) {
	return func(s *scene) {
		s.Helper()
		text := printed(s.plannedBy(s.present(), "doris"))
		for _, t := range texts {
			if !strings.Contains(text, t) {
				s.Errorf("the plan does not say %q:\n%s", t, text)
			}
		}
	}
}

// both checks one thing and then another.
func both(checks ...func(*scene)) func(*scene) {
	return func(s *scene) {
		s.Helper()
		for _, c := range checks {
			c(s)
		}
	}
}

func takeoverCases() []afterwards {
	duplicated := func(set *appsv1.StatefulSet) {
		c := &set.Spec.Template.Spec.Containers[0]
		c.Env = append(c.Env, corev1.EnvVar{Name: "TWICE", Value: "1"}, corev1.EnvVar{Name: "TWICE", Value: "2"}, corev1.EnvVar{Name: "USER", Value: "root"})
	}
	stillTwice := func(s *scene) {
		if got := variables(backends(s)); len(got["TWICE"]) != 2 || len(got["USER"]) != 2 {
			s.Errorf("TWICE is %v and USER is %v", got["TWICE"], got["USER"])
		}
	}
	return []afterwards{
		{
			name: "a variable and a label that another manager wrote are taken away",
			then: func(s *scene) {
				s.edit("doris", func(dc *dorisv1.DorisCluster) {
					dc.Spec.BeSpec.EnvVars, dc.Spec.BeSpec.PodLabels = dc.Spec.BeSpec.EnvVars[1:], nil
				})
			},
			went: backendsFollow,
			check: func(s *scene) {
				set := backends(s)
				if got := variables(set); got["A"] != nil || !slices.Equal(got["B"], []string{"b"}) || set.Spec.Template.Labels["tier"] != "" {
					s.Errorf("variables %v, labels %v", got, set.Spec.Template.Labels)
				}
			},
		},
		{name: "variables are there twice: nothing collapses", made: duplicated, check: stillTwice},
		{
			name: "variables are there twice and the image is edited: they stay, and the image comes",
			made: duplicated, then: newBackendImage, went: backendsFollow,
			check: both(stillTwice, func(s *scene) {
				if got := backends(s).Spec.Template.Spec.Containers[0].Image; got != newBackend {
					s.Errorf("image %s", got)
				}
			}),
		},
		{
			name:   "a person had scaled out: the number stays",
			before: func(s *scene) { s.scaleAs("kubectl", "doris-be", 3); s.serves() },
			check:  both(replicasStay(3), findsInPlan("spec.replicas")),
		},
		{
			name: "a person scales out: the number stays and is named",
			then: func(s *scene) { s.scaleAs("kubectl", "doris-be", 3); s.serves() },
			check: both(replicasStay(3), findsInPlan("somebody else scaled StatefulSet doris-be to 3"), func(s *scene) {
				s.says("doris", meta.ConditionFullySupported, metav1.ConditionFalse, "somebody else scaled")
			}),
		},
		{
			name: "an autoscaler had scaled in: the number stays",
			before: func(s *scene) {
				s.scaleAs("horizontal-pod-autoscaler", "doris-be", 1)
				s.serves()
			},
			check: replicasStay(1), breaks: true,
		},
		{
			name: "an autoscaler scales out and in again: the number stays",
			then: func(s *scene) {
				s.scaleAs("kube-controller-manager", "doris-be", 3)
				s.serves()
				s.quiet(time.Second)
				s.scaleAs("kube-controller-manager", "doris-be", 1)
			},
			went: []string{"doris-be-2", "doris-be-1"}, check: replicasStay(1), breaks: true,
		},
		{
			name: "a restart that is asked for with an older time counts as another request",
			then: func(s *scene) { s.annotate("doris", dorisv1.AnnotationBERestartedAt, "2026-01-01T00:00:00Z") },
			went: backendsFollow,
		},
		{
			name: "a restart that is asked for with a newer time",
			then: func(s *scene) { s.annotate("doris", dorisv1.AnnotationBERestartedAt, "2027-01-01T00:00:00Z") },
			went: backendsFollow,
		},
		{
			name:  "a restart that is asked for in words",
			then:  func(s *scene) { s.annotate("doris", dorisv1.AnnotationBERestartedAt, "now") },
			check: findsInPlan("it is not a time"),
		},
		{
			name:   "kubectl rollout restart before the takeover counts as done",
			before: both(annotated(kubectlRestart, "2026-11-01T00:00:00Z"), rolledByController),
		},
		{
			name: "kubectl rollout restart after the takeover",
			then: annotated(kubectlRestart, "2026-11-02T00:00:00Z"), went: backendsFollow,
		},
		{
			name: "an image and then kubectl rollout restart",
			then: func(s *scene) {
				newBackendImage(s)
				s.wentSoFar(2)
				s.settled("doris")
				annotated(kubectlRestart, "2026-11-03T00:00:00Z")(s)
			},
			went: append(slices.Clone(backendsFollow), backendsFollow...),
		},
		{
			name: "the set is deleted by hand with its Pods",
			then: func(s *scene) { s.deleteSet(metav1.DeletePropagationForeground) },
			expect: func(s *scene) {
				s.eventually("both Pods are new", func() string {
					if made := s.history.Made(); made["doris-be-0"] < 2 || made["doris-be-1"] < 2 {
						return "they are not"
					}
					return ""
				})
				s.serves()
			},
			went: []string{"any", "any"}, check: madeAgain, breaks: true,
		},
		{
			name: "the set is deleted by hand and its Pods are left",
			then: func(s *scene) { s.deleteSet(metav1.DeletePropagationOrphan) }, expect: func(s *scene) {
				s.eventually("the set is made again", func() string {
					if backends(s).Annotations[meta.AnnotationRevision] == "" {
						return "it is not"
					}
					return ""
				})
				s.serves()
			},
			check: madeAgain,
		},
		{
			name: "the update strategy is put back: Pods would be replaced by somebody else",
			then: func(s *scene) {
				changeAs(s, "a-stranger", "doris-be", &appsv1.StatefulSet{}, func(set *appsv1.StatefulSet) {
					set.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType}
				})
			},
			check: func(s *scene) {
				if got := backends(s).Spec.UpdateStrategy; got.Type != appsv1.OnDeleteStatefulSetStrategyType || got.RollingUpdate != nil {
					s.Errorf("strategy %+v", got)
				}
			},
		},
		halfRolled(),
	}
}

// TestAroundTheTakeover tells many short stories beside each other, under one
// operator: what happened to a cluster before it was taken over, and what is done
// to it after that.
func TestAroundTheTakeover(t *testing.T) {
	t.Parallel()
	cases := takeoverCases()
	scenes, parts := make([]*scene, len(cases)), make([][]func(), len(cases))
	var namespaces []string
	for i, tc := range cases {
		s := newScene(t)
		scenes[i], namespaces = s, append(namespaces, s.namespace)
		parts[i] = s.legacyParts(strings.Replace(pair, "{name: doris}", `{name: doris, annotations: {"apache.doris.be/restartedAt": "2026-05-06T07:00:00Z"}}`, 1), func(set *appsv1.StatefulSet) {
			if set.Name == "doris-be" && tc.made != nil {
				tc.made(set)
			}
		})
	}
	together(scenes, parts)
	for i, tc := range cases {
		if tc.breaks {
			scenes[i].history.Deleting()
		}
		if tc.before != nil {
			tc.before(scenes[i])
		}
	}
	began := make([]int, len(cases))
	for i, s := range scenes {
		began[i] = len(s.history.Went())
	}
	scenes[0].operate(func(o *settings) { o.Namespaces = namespaces })
	for i := range cases {
		scenes[i].taken("doris")
	}
	for i, tc := range cases {
		if tc.then != nil {
			tc.then(scenes[i])
		}
	}
	for i, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := *scenes[i]
			s.T = t
			tc.ends(&s, began[i])
		})
	}
}

// ends waits for what is to come of what was done, and holds what is true then.
// began is how many Pods had gone before.
func (tc afterwards) ends(s *scene, began int) {
	s.Helper()
	if tc.expect != nil {
		tc.expect(s)
	}
	if n := began + len(tc.went); n > began && tc.went[0] != "any" {
		s.wentSoFar(n)
		s.serves()
	}
	s.quiet(2 * time.Second)
	if went := s.history.Went()[began:]; len(tc.went) == 0 || tc.went[0] != "any" {
		if diff := cmp.Diff(tc.went, went, cmpopts.EquateEmpty()); diff != "" {
			s.Errorf("Pods that went (-want +got):\n%s\n%s", diff, printed(s.plannedBy(s.present(), "doris")))
		}
	}
	if tc.check != nil {
		tc.check(s)
	}
	if got := backends(s).Annotations[meta.AnnotationRevision]; got != "0" {
		s.Errorf("revision %q: a newer rendering rides along only when asked", got)
	}
}
