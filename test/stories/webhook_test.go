package stories

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	reviewv1 "k8s.io/api/admission/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
)

// webhook is a served admission webhook, as meshes and policy engines have them: it
// rewrites a field of every StatefulSet's template and puts a container into
// every Pod.
type webhook struct{ sets, pods atomic.Int32 }

const (
	hookedGrace = 66
	hookedImage = "mesh:1"
)

// ServeHTTP answers one review.
func (h *webhook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review reviewv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "no review", http.StatusBadRequest)
		return
	}
	patch := `[{"op":"add","path":"/spec/containers/-","value":{"name":"mesh","image":"` + hookedImage + `"}}]`
	if review.Request.Kind.Kind == "StatefulSet" {
		h.sets.Add(1)
		patch = fmt.Sprintf(`[{"op":"add","path":"/spec/template/spec/terminationGracePeriodSeconds","value":%d}]`, hookedGrace)
	} else {
		h.pods.Add(1)
	}
	review.Response = &reviewv1.AdmissionResponse{UID: review.Request.UID, Allowed: true, Patch: []byte(patch), PatchType: new(reviewv1.PatchTypeJSONPatch)}
	review.Request = nil
	_ = json.NewEncoder(w).Encode(review)
}

// hooked has the API server ask a webhook about every set and every new Pod of the
// namespace, and waits until it does.
func (s *scene) hooked() *webhook {
	s.Helper()
	h := &webhook{}
	server := httptest.NewTLSServer(h)
	s.Cleanup(server.Close)
	rule := func(operation admissionv1.OperationType, group, resource string) admissionv1.RuleWithOperations {
		return admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{operation},
			Rule:       admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: []string{resource}},
		}
	}
	made := &admissionv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "hook-" + s.namespace},
		Webhooks: []admissionv1.MutatingWebhook{{
			Name: "hook.stories.fairlead.dev", AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionv1.SideEffectClassNone),
			ClientConfig: admissionv1.WebhookClientConfig{
				URL: new(server.URL), CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			FailurePolicy:     new(admissionv1.Fail),
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": s.namespace}},
			Rules: []admissionv1.RuleWithOperations{
				rule(admissionv1.Create, "apps", "statefulsets"), rule(admissionv1.Update, "apps", "statefulsets"), rule(admissionv1.Create, "", "pods"),
			},
		}},
	}
	s.must(s.client.Create(s.Context(), made))
	s.Cleanup(func() { _ = s.client.Delete(context.Background(), made) })
	s.eventually("the webhook is asked", func() string {
		probe := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "probe"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}
		// A request of its own for the default account of the namespace may come first.
		if err := s.client.Create(s.Context(), probe, client.DryRunAll); err != nil {
			return err.Error()
		}
		if len(probe.Spec.Containers) != 2 {
			return "it puts in no container"
		}
		return ""
	})
	return h
}

// TestAServedWebhookDuringATakeover takes a cluster over and changes its image while
// a webhook rewrites what is rendered and adds to Pods.
func TestAServedWebhookDuringATakeover(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.legacy(strings.ReplaceAll(three, "replicas: 3", "replicas: 1"))
	s.serves()
	h := s.hooked()
	before := s.identities()
	s.operate()
	s.taken("doris")
	s.settled("doris")
	s.quiet(2 * time.Second)
	if diff := cmp.Diff(before, s.identities()); diff != "" {
		t.Errorf("Pods after the takeover (-before +after):\n%s", diff)
	}
	asked := h.sets.Load()
	mark := s.mark()
	s.edit("doris", func(dc *dorisv1.DorisCluster) { dc.Spec.BeSpec.Image = newBackend })
	s.wentSoFar(1)
	s.serves()
	s.settled("doris")
	s.quiet(3 * time.Second)
	tally, err := s.requests().Since(mark, s.namespace)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("an image under a served webhook: %s; it was asked about sets %d times before, and %d then", tally.Summary(), asked, h.sets.Load()-asked)
	if tally.ObjectWrites > 8 {
		t.Errorf("the operator did not come to rest at once:\n%s", tally)
	}
	if diff := cmp.Diff([]string{"doris-be-0"}, s.history.Went()); diff != "" {
		t.Errorf("Pods that went (-want +got):\n%s", diff)
	}
	pod := s.pods("be")[0]
	if grace := *pod.Spec.TerminationGracePeriodSeconds; grace != hookedGrace || len(pod.Spec.Containers) != 2 || h.pods.Load() == 0 {
		t.Errorf("the webhook did nothing: grace period %d, %d containers", grace, len(pod.Spec.Containers))
	}
}
