package story

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
)

// TestHistoryIsHeldAgainstThePromises holds that a broken promise is seen.
func TestHistoryIsHeldAgainstThePromises(t *testing.T) {
	pod := func(name string, ready, going bool) *corev1.Pod {
		p := &corev1.Pod{}
		p.Name, p.UID = name, types.UID(name)
		p.Labels = map[string]string{dorisv1.LabelCluster: "doris", dorisv1.LabelComponent: name[6:8]}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
		if ready {
			p.Status.Conditions[0].Status = corev1.ConditionTrue
		}
		if going {
			p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}
		return p
	}
	set := func(name string, replicas int32) *appsv1.StatefulSet {
		s := &appsv1.StatefulSet{}
		s.Name, s.Spec.Replicas = name, &replicas
		return s
	}
	tests := map[string]struct {
		objects []client.Object
		want    string
	}{
		"nothing broken": {[]client.Object{
			set("doris-fe", 1), pod("doris-fe-0", true, false), set("doris-be", 1), pod("doris-be-0", true, false), pod("doris-be-0", true, true),
		}, ""},
		"backends before frontends": {[]client.Object{set("doris-fe", 1), set("doris-be", 1)}, "before a frontend served"},
		"fewer replicas":            {[]client.Object{set("doris-fe", 3), set("doris-fe", 2)}, "from 3 to 2"},
		"two at once": {[]client.Object{
			set("doris-fe", 2), pod("doris-fe-0", true, false), pod("doris-fe-1", true, false), pod("doris-fe-1", true, true), pod("doris-fe-0", true, true),
		}, "while doris-fe-1 was going"},
		"one while another does not serve": {[]client.Object{
			set("doris-fe", 2), pod("doris-fe-0", false, false), pod("doris-fe-1", true, false), pod("doris-fe-1", true, true),
		}, "these did not: [doris-fe-0]"},
		"one while another is missing": {[]client.Object{
			set("doris-fe", 2), pod("doris-fe-1", true, false), pod("doris-fe-1", true, true),
		}, "1 of 2 Pods of doris-fe"},
		"the broken one itself": {[]client.Object{
			set("doris-fe", 2), pod("doris-fe-0", false, false), pod("doris-fe-1", true, false), pod("doris-fe-0", false, true),
		}, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := &History{}
			for i, o := range tc.objects {
				h.events = append(h.events, happening{version: int64(i), kind: watch.Modified, object: o})
			}
			got := strings.Join(h.replay(), "; ")
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("broken promises are %q, want %q", got, tc.want)
			}
		})
	}
}
