package stories

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestCopiesAreBounded edits a ConfigMap again and again, while a roll is on its way
// and after it: what Pods, templates and revisions name stays, and all else goes.
func TestCopiesAreBounded(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.operate()
	s.create(`
apiVersion: v1
kind: ConfigMap
metadata: {name: be-conf}
data: {be.conf: "a = 0\n"}
---
apiVersion: doris.selectdb.com/v1
kind: DorisCluster
metadata: {name: doris}
spec:
  configUpdatePolicy: Restart
  feSpec:
    replicas: 1
    image: "apache/doris:fe-2.1.8"
    persistentVolumes:
    - {name: meta, mountPath: /opt/apache-doris/fe/doris-meta, persistentVolumeClaimSpec: {resources: {requests: {storage: 1Gi}}}}
  beSpec:
    replicas: 2
    image: "apache/doris:be-2.1.8"
    configMapInfo: {configMapName: be-conf, resolveKey: be.conf}
    persistentVolumes:
    - {name: data, mountPath: /opt/apache-doris/be/storage, persistentVolumeClaimSpec: {resources: {requests: {storage: 1Gi}}}}
`)
	s.settled("doris")
	for n := range 5 {
		change(s, "be-conf", &corev1.ConfigMap{}, func(cm *corev1.ConfigMap) { cm.Data["be.conf"] = fmt.Sprintf("a = %d\n", n+1) })
		s.eventually("the template follows", func() string {
			for _, p := range s.pods("be") { // what they mount is there, at any time
				for _, v := range p.Spec.Volumes {
					if v.ConfigMap != nil && p.DeletionTimestamp == nil {
						s.get(v.ConfigMap.Name, &corev1.ConfigMap{})
					}
				}
			}
			if !slices.Contains(s.contents(), fmt.Sprintf("a = %d\n", n+1)) {
				return "there is no copy"
			}
			return ""
		})
	}
	s.eventually("the roll is over and what nothing names is gone", func() string {
		if diff := cmp.Diff([]string{"a = 5\n"}, s.contents()); diff != "" {
			return diff
		}
		if diff := cmp.Diff([]string{backends(s).Status.UpdateRevision}, s.revisions()); diff != "" {
			return diff
		}
		return ""
	})
	before := s.identities()
	s.quiet(3 * time.Second)
	if diff := cmp.Diff(before, s.identities()); diff != "" {
		t.Errorf("taking a revision away moved Pods (-before +after):\n%s", diff)
	}
	set := backends(s)
	if set.Status.CurrentRevision != set.Status.UpdateRevision || set.Status.ReadyReplicas != 2 {
		t.Errorf("status %+v", set.Status)
	}
}

// contents is what the copies of the ConfigMap of backends hold.
func (s *scene) contents() []string {
	s.Helper()
	var out []string
	for _, o := range s.list(&corev1.ConfigMapList{}) {
		if cm := o.(*corev1.ConfigMap); cm.Name != "be-conf" && cm.Data["be.conf"] != "" {
			out = append(out, cm.Data["be.conf"])
		}
	}
	slices.Sort(out)
	return out
}

// revisions are the ControllerRevisions of the backends.
func (s *scene) revisions() []string {
	s.Helper()
	var out []string
	for _, o := range s.list(&appsv1.ControllerRevisionList{}) {
		if metav1.IsControlledBy(o, backends(s)) {
			out = append(out, o.GetName())
		}
	}
	return out
}
