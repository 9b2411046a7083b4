package stories

import (
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
)

// TestOtherNamespacesAreLeftAlone runs an operator that leads, for one namespace.
func TestOtherNamespacesAreLeftAlone(t *testing.T) {
	s, elsewhere := newScene(t), newScene(t)
	s.operate(func(o *settings) { o.LeaderElect = true })
	elsewhere.create(small)
	s.create(small)
	s.settled("doris")
	if dc := elsewhere.doris("doris"); len(dc.Status.Conditions) > 0 {
		t.Errorf("the other cluster was seen: %v", dc.Status.Conditions)
	}
	if pods := elsewhere.pods(""); len(pods) > 0 {
		t.Errorf("the other namespace has %d Pods", len(pods))
	}
}

// TestDefinitionComesLater starts the operator where the kind is not served. It
// waits, and serves as soon as the definition is there.
func TestDefinitionComesLater(t *testing.T) {
	s := newScene(t)
	name := "dorisclusters.doris.selectdb.com"
	if err := s.client.Delete(t.Context(), &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.must(install(s.client, isDefinition)) }) // also when this fails half-way
	s.eventually("the definition is gone", func() string {
		if err := s.client.Get(t.Context(), client.ObjectKey{Name: name}, &apiextensionsv1.CustomResourceDefinition{}); !apierrors.IsNotFound(err) {
			return "it is there"
		}
		// Some versions list a kind for a while longer than they serve it.
		kinds, err := discovery.NewDiscoveryClientForConfigOrDie(s.cluster.RESTConfig()).ServerResourcesForGroupVersion(dorisv1.GroupVersion.String())
		if err == nil && slices.ContainsFunc(kinds.APIResources, func(r metav1.APIResource) bool { return r.Kind == "DorisCluster" }) {
			return "it is still listed"
		}
		return ""
	})
	op := s.operate()
	s.eventually("the operator says what it waits for", func() string {
		if !strings.Contains(op.logged(), "waiting for the custom resource definition") {
			return "it does not"
		}
		return ""
	})
	s.must(install(s.client, isDefinition))
	s.must(awaitKind(s.client))
	s.create(small)
	s.settled("doris")
}

func isDefinition(kind string) bool { return kind == "CustomResourceDefinition" }

func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Error(err)
	}
}

// TestMissingRightIsNamed takes one right from the operator's role. A condition
// names what is missing; once it is back, all goes on.
func TestMissingRightIsNamed(t *testing.T) {
	s := newScene(t)
	s.refusals = true
	s.operate()
	t.Cleanup(func() { s.must(install(s.client, func(kind string) bool { return kind == "ClusterRole" })) })
	role := &rbacv1.ClusterRole{}
	if err := s.client.Get(t.Context(), client.ObjectKey{Name: "fairlead"}, role); err != nil {
		t.Fatal(err)
	}
	for i := range role.Rules {
		if slices.Contains(role.Rules[i].Resources, "services") {
			role.Rules[i].Verbs = []string{"get", "list", "watch"}
		}
	}
	if err := s.client.Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second) // the API server learns of it by a watch
	s.create(small)
	s.says("doris", meta.ConditionStalled, metav1.ConditionTrue, "services", "forbidden")
	s.must(install(s.client, func(kind string) bool { return kind == "ClusterRole" }))
	s.settled("doris")
}
