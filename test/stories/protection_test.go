package stories

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/test/story"
)

const guarded = `apiVersion: doris.selectdb.com/v1
kind: DorisCluster
metadata: {name: doris, annotations: {fairlead.dev/deletion-protection: "true"}}
spec:
  feSpec: {replicas: 1, image: "apache/doris:fe-2.1.8"}
---
apiVersion: doris.selectdb.com/v1
kind: DorisCluster
metadata: {name: free, annotations: {fairlead.dev/deletion-protection: "false"}}
spec:
  feSpec: {replicas: 1, image: "apache/doris:fe-2.1.8"}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, annotations: {fairlead.dev/deletion-protection: ""}}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: other}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`

// protects installs the policy of config/admission, and takes it away in the end.
func (s *scene) protects() {
	s.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "config", "admission", "deletion-protection.yaml"))
	if err != nil {
		s.Fatal(err)
	}
	for _, u := range story.Documents(string(text)) {
		s.must(s.client.Create(s.Context(), &u))
		s.Cleanup(func() { _ = s.client.Delete(context.Background(), &u) })
	}
}

func TestDeletionProtection(t *testing.T) {
	s := newScene(t)
	s.since(30, "ValidatingAdmissionPolicy")
	s.protects()
	s.create(guarded)
	cluster := func(name string) *dorisv1.DorisCluster {
		return &dorisv1.DorisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
	}
	claim := func(name string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
	}
	s.eventually("the policy is in force", func() string {
		err := s.client.Delete(s.Context(), claim("data"), client.DryRunAll)
		if !apierrors.IsForbidden(err) {
			return "the answer is not Forbidden"
		}
		return ""
	})
	for what, err := range map[string]error{
		"DorisCluster doris":         s.client.Delete(s.Context(), cluster("doris")),
		"PersistentVolumeClaim data": s.client.Delete(s.Context(), claim("data")),
		"of all": s.client.DeleteAllOf(s.Context(), &dorisv1.DorisCluster{}, client.InNamespace(s.namespace),
			client.MatchingFields{"metadata.name": "doris"}),
	} {
		if !apierrors.IsForbidden(err) || (what != "of all" && !strings.Contains(err.Error(), what+" protects it: take the annotation off first")) {
			t.Errorf("deletion of %s: %v", what, err)
		}
	}
	s.must(s.client.Delete(s.Context(), cluster("free")))
	s.must(s.client.Delete(s.Context(), claim("other"), client.DryRunAll)) // no story may lose a claim
	for _, o := range []client.Object{cluster("doris"), claim("data")} {
		s.get(o.GetName(), o)
		if !o.GetDeletionTimestamp().IsZero() {
			t.Errorf("%s goes", o.GetName())
		}
		annotations := o.GetAnnotations()
		delete(annotations, meta.AnnotationDeletionProtection)
		o.SetAnnotations(annotations)
		s.must(s.client.Update(s.Context(), o))
		s.must(s.client.Delete(s.Context(), o, client.DryRunAll))
	}
}
