package stories

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	clihistory "github.com/fairlead-dev/fairlead/internal/cli/history"
	"github.com/fairlead-dev/fairlead/test/simnode"
	"github.com/fairlead-dev/fairlead/test/story"
)

// TestALife is the life of one cluster: created, upgraded, hit by a bad image,
// mended, grown, edited by strangers, and deleted.
func TestALife(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.operate()
	s.create(three)
	s.settled("doris")
	chapters := []struct {
		name string
		do   func(*scene)
	}{
		{"an image edit replaces one Pod at a time, backends first", upgrade},
		{"a bad image stops at one Pod and goes on when it is mended", badImage},
		{"the history tells of both, and of nothing else", tellsHistory},
		{"scaling out restarts nobody", scaleOut},
		{"the Service for clients follows the spec", editServices},
		{"what strangers do to a Service is undone, but for what is theirs", strangeService},
		{"what a stranger does to a Pod template is held", strangeTemplate},
		{"deletion removes what is ours and keeps the claims", deletion},
	}
	for _, c := range chapters {
		if t.Failed() {
			return
		}
		began := time.Now()
		s.Logf("%s", c.name)
		c.do(s)
		s.Logf("  took %s", time.Since(began).Round(100*time.Millisecond))
	}
}

func upgrade(s *scene) {
	before := len(s.history.Went())
	s.edit("doris", func(dc *dorisv1.DorisCluster) {
		dc.Spec.FeSpec.Image, dc.Spec.BeSpec.Image = "apache/doris:fe-3.0.5", "apache/doris:be-3.0.5"
	})
	s.settled("doris")
	want := []string{"doris-be-2", "doris-be-1", "doris-be-0", "doris-fe-2", "doris-fe-1", "doris-fe-0"}
	if diff := cmp.Diff(want, s.history.Went()[before:]); diff != "" {
		s.Errorf("Pods replaced (-want +got):\n%s", diff)
	}
	for _, p := range s.pods("") {
		if !strings.HasSuffix(p.Spec.Containers[0].Image, "3.0.5") {
			s.Errorf("%s runs %s", p.Name, p.Spec.Containers[0].Image)
		}
	}
}

func badImage(s *scene) {
	defer s.nodes.Inject(simnode.Rule{Fault: simnode.FaultImagePull, Namespace: s.namespace, Image: "*broken*"})()
	before := len(s.history.Went())
	s.edit("doris", func(dc *dorisv1.DorisCluster) { dc.Spec.BeSpec.Image = "apache/doris:broken" })
	s.eventually("the status tells of the failure", func() string {
		st := s.doris("doris").Status.BeStatus
		if st.ComponentCondition.Phase != dorisv1.PhaseHaveMemberFailed || !slices.Equal(st.FailedInstances, []string{"doris-be-2"}) {
			return "phase " + string(st.ComponentCondition.Phase) + ", failed " + strings.Join(st.FailedInstances, " ")
		}
		return ""
	})
	s.stays("the roll stops at one Pod", 2*time.Second, func() string {
		if went := s.history.Went()[before:]; !slices.Equal(went, []string{"doris-be-2"}) {
			return strings.Join(went, " ") + " went"
		}
		return ""
	})
	s.says("doris", meta.ConditionAvailable, metav1.ConditionTrue)
	s.says("doris", meta.ConditionReady, metav1.ConditionFalse, "doris-be-2")
	s.edit("doris", func(dc *dorisv1.DorisCluster) { dc.Spec.BeSpec.Image = "apache/doris:be-3.0.6" })
	s.settled("doris")
	want := []string{"doris-be-2", "doris-be-2", "doris-be-1", "doris-be-0"}
	if diff := cmp.Diff(want, s.history.Went()[before:]); diff != "" {
		s.Errorf("Pods replaced (-want +got):\n%s", diff)
	}
}

// tellsHistory holds what the plugin says of the chapters before.
func tellsHistory(s *scene) {
	s.Helper()
	want := []string{
		"be Done a-person 3 beSpec.image: apache/doris:be-3.0.5 -> apache/doris:be-3.0.6",
		"be Stopped a-person 3 beSpec.image: apache/doris:be-3.0.5 -> apache/doris:broken",
		"fe Done a-person 3 feSpec.image: apache/doris:fe-2.1.8 -> apache/doris:fe-3.0.5",
		"be Done a-person 3 beSpec.image: apache/doris:be-2.1.8 -> apache/doris:be-3.0.5",
	}
	var got []string
	s.eventually("the history is told", func() string {
		out, _ := s.plugged("", "history", "dcr", "doris", "-o", "json")
		var views []clihistory.View
		if err := json.Unmarshal([]byte(out), &views); err != nil || len(views) != 1 {
			return fmt.Sprintf("%d resources, %v:\n%s", len(views), err, out)
		}
		got = nil
		for _, r := range views[0].History {
			got = append(got, fmt.Sprintf("%s %s %s %d %s", r.Component, r.Outcome, strings.Join(r.By, " "), r.Pods, strings.Join(r.Changes, "; ")))
		}
		return cmp.Diff(want, got)
	})
	s.saysPlugin(0, []string{"OUTCOME", "Stopped", "doris-be-2 did not come up"}, "history", "dcr/doris")
}

func scaleOut(s *scene) {
	before := s.identities()
	s.edit("doris", func(dc *dorisv1.DorisCluster) { dc.Spec.BeSpec.Replicas = new(int32(4)) })
	s.settled("doris")
	after := s.identities()
	if len(after) != len(before)+1 || after["doris-be-3"] == "" {
		s.Errorf("Pods are %v", after)
	}
	for name, uid := range before {
		if after[name] != uid {
			s.Errorf("%s was replaced", name)
		}
	}
}

func editServices(s *scene) {
	before := s.identities()
	s.edit("doris", func(dc *dorisv1.DorisCluster) {
		dc.Spec.FeSpec.Service = &dorisv1.ExportService{
			Type: corev1.ServiceTypeNodePort, Annotations: map[string]string{"example.org/zone": "a"},
			ServicePorts: []dorisv1.ServicePort{{TargetPort: 9030, NodePort: 31030}},
		}
	})
	s.settled("doris")
	service := &corev1.Service{}
	s.get("doris-fe-service", service)
	fixed := int32(0)
	for _, p := range service.Spec.Ports {
		if p.Port == 9030 {
			fixed = p.NodePort
		}
	}
	if service.Spec.Type != corev1.ServiceTypeNodePort || fixed != 31030 || service.Annotations["example.org/zone"] != "a" {
		s.Errorf("type %s, node port %d, annotations %v", service.Spec.Type, fixed, service.Annotations)
	}
	s.edit("doris", func(dc *dorisv1.DorisCluster) { dc.Spec.FeSpec.Service = nil })
	s.settled("doris")
	s.get("doris-fe-service", service)
	if service.Spec.Type != corev1.ServiceTypeClusterIP || service.Annotations["example.org/zone"] != "" {
		s.Errorf("the Service did not go back: type %s, annotations %v", service.Spec.Type, service.Annotations)
	}
	if diff := cmp.Diff(before, s.identities()); diff != "" {
		s.Errorf("an edit of a Service replaced Pods (-before +after):\n%s", diff)
	}
}

func strangeService(s *scene) {
	change(s, "doris-be-service", &corev1.Service{}, func(o *corev1.Service) {
		o.Spec.Ports = o.Spec.Ports[:1]
		o.Labels["theirs"], o.Annotations["theirs"] = "yes", "yes"
	})
	s.eventually("the Service has its ports again", func() string {
		service := &corev1.Service{}
		s.get("doris-be-service", service)
		if len(service.Spec.Ports) < 4 {
			return "it has too few"
		}
		if service.Labels["theirs"] != "yes" || service.Annotations["theirs"] != "yes" {
			s.Errorf("what the stranger added is gone: %v %v", service.Labels, service.Annotations)
		}
		return ""
	})
	s.settled("doris")
}

func strangeTemplate(s *scene) {
	before := s.identities()
	change(s, "doris-be", &appsv1.StatefulSet{}, func(o *appsv1.StatefulSet) {
		o.Spec.Template.Spec.Containers[0].Image = "apache/doris:strange"
	})
	s.says("doris", meta.ConditionChangePending, metav1.ConditionTrue, "doris-be")
	s.says("doris", meta.ConditionReady, metav1.ConditionTrue)
	s.quiet(time.Second)
	set := &appsv1.StatefulSet{}
	s.get("doris-be", set)
	if got := set.Spec.Template.Spec.Containers[0].Image; got != "apache/doris:strange" {
		s.Errorf("the template was fought over: image is %s", got)
	}
	if diff := cmp.Diff(before, s.identities()); diff != "" {
		s.Errorf("Pods were replaced (-before +after):\n%s", diff)
	}
	// The stranger takes it back.
	change(s, "doris-be", &appsv1.StatefulSet{}, func(o *appsv1.StatefulSet) {
		o.Spec.Template.Spec.Containers[0].Image = "apache/doris:be-3.0.6"
	})
	s.eventually("nothing is pending", func() string {
		if text := story.ConditionText(s.doris("doris"), meta.ConditionChangePending); !strings.HasPrefix(text, "no condition") {
			return text
		}
		return ""
	})
	s.settled("doris")
	if diff := cmp.Diff(before, s.identities()); diff != "" {
		s.Errorf("Pods were replaced (-before +after):\n%s", diff)
	}
}

func deletion(s *scene) {
	time.Sleep(200 * time.Millisecond) // the history is on its way
	s.history.Deleting()
	claims := &corev1.PersistentVolumeClaimList{}
	if err := s.client.List(s.Context(), claims, client.InNamespace(s.namespace)); err != nil || len(claims.Items) == 0 {
		s.Fatalf("%d claims: %v", len(claims.Items), err)
	}
	if err := s.client.Delete(s.Context(), s.doris("doris")); err != nil {
		s.Fatal(err)
	}
	s.eventually("all that is ours is gone", func() string {
		var left []string
		for _, list := range []client.ObjectList{&appsv1.StatefulSetList{}, &corev1.ServiceList{}, &corev1.PodList{}, &corev1.SecretList{}, &corev1.ConfigMapList{}} {
			if err := s.client.List(s.Context(), list, client.InNamespace(s.namespace)); err != nil {
				return err.Error()
			}
			for _, name := range namesOf(list) {
				if strings.HasPrefix(name, "doris-") {
					left = append(left, name)
				}
			}
		}
		return strings.Join(left, " ")
	})
	after := &corev1.PersistentVolumeClaimList{}
	if err := s.client.List(s.Context(), after, client.InNamespace(s.namespace)); err != nil {
		s.Fatal(err)
	}
	for _, c := range after.Items {
		if c.DeletionTimestamp != nil {
			s.Errorf("claim %s is being deleted", c.Name)
		}
	}
	if len(after.Items) != len(claims.Items) {
		s.Errorf("%d claims of %d are left", len(after.Items), len(claims.Items))
	}
}
