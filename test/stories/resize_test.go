package stories

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/test/simnode"
)

func backendMemory(size string) func(*dorisv1.DorisCluster) {
	return func(dc *dorisv1.DorisCluster) {
		dc.Spec.BeSpec.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(size)}
	}
}

// TestMemoryIsRaisedInPlace has more memory reach Pods that run; where a node refuses,
// the Pod is replaced.
func TestMemoryIsRaisedInPlace(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.since(33, "resizes in place")
	s.operate()
	s.create(three)
	s.settled("doris")
	s.edit("doris", backendMemory("1Gi")) // another class of service: a restart
	s.settled("doris")
	before := s.identities()
	s.edit("doris", backendMemory("2Gi"))
	s.settled("doris")
	s.samePods(before)
	for _, p := range s.pods("be") {
		c := p.Status.ContainerStatuses[0]
		if has := c.Resources.Requests.Memory().String(); has != "2Gi" || c.RestartCount != 0 {
			t.Errorf("%s has %s of memory and restarted %d times", p.Name, has, c.RestartCount)
		}
	}
	went := len(s.history.Went())
	undo := s.nodes.Inject(simnode.Rule{Fault: simnode.FaultResizeRefused, Namespace: s.namespace, Name: "doris-be-1"})
	defer undo()
	s.edit("doris", backendMemory("3Gi"))
	s.settled("doris")
	if got := s.history.Went()[went:]; !slices.Equal(got, []string{"doris-be-1"}) {
		t.Errorf("%v went, and one was refused", got)
	}
	for _, p := range s.pods("be") {
		if has := p.Status.ContainerStatuses[0].Resources.Requests.Memory().String(); has != "3Gi" {
			t.Errorf("%s has %s", p.Name, has)
		}
	}
}
