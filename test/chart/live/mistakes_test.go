package live

import (
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What can be known to fail is refused before anything is written. (Helm itself applies
// one object after the other, and stops where the API server refuses one.)
func TestNothingIsWrittenOfWhatCannotBe(t *testing.T) {
	h := newHelm(t)
	for _, tc := range []struct {
		name, values string
		want         []string
	}{
		{"a namespace that is not there", "watchNamespaces: [" + h.namespace + ", nowhere]", []string{`watchNamespaces has "nowhere", and there is no such namespace`}},
		{"a field that Kubernetes does not know", "podSecurityContext: {runAsNonroot: true}", []string{"additional properties 'runAsNonroot' not allowed"}},
		{"a mount without its volume", "operatorPod: {volumeMounts: [{name: v, mountPath: /v}]}", []string{"operatorPod.volumeMounts has v, of which there is no volume"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := h.in(t)
			_, err := h.tryInstall("fairlead", tc.values)
			wantError(t, err, tc.want...)
			for _, list := range []client.ObjectList{&appsv1.DeploymentList{}, &corev1.ServiceList{}} {
				if err := h.client.List(t.Context(), list, client.InNamespace(h.namespace)); err != nil {
					t.Fatal(err)
				}
				if names := namesOf(list); len(names) > 0 {
					t.Errorf("there are %v", names)
				}
			}
			if h.definition() != nil {
				t.Error("there is the definition")
			}
		})
	}
}

// Somebody edits the ConfigMap of a release in the cluster. The next upgrade does not
// take that back unasked: it says whose the field is.
func TestAnEditOfTheConfigMapIsNotTakenBackUnasked(t *testing.T) {
	h := newHelm(t)
	h.install("fairlead", "{}")
	var cm corev1.ConfigMap
	if err := h.client.Get(t.Context(), client.ObjectKey{Namespace: h.namespace, Name: "fairlead-config"}, &cm); err != nil {
		t.Fatal(err)
	}
	before := cm.DeepCopy()
	cm.Data["config.yaml"] += "logLevel: debug\n"
	if err := h.client.Patch(t.Context(), &cm, client.MergeFrom(before), client.FieldOwner("kubectl-edit")); err != nil {
		t.Fatal(err)
	}
	_, err := h.tryUpgrade("fairlead", "workers: 4")
	wantError(t, err, "conflict", "kubectl-edit", ".data.config.yaml")
	if now := h.configuration("fairlead-config"); now != cm.Data["config.yaml"] {
		t.Errorf("the ConfigMap has:\n%s", now)
	}
	if _, err := h.tryUpgrade("fairlead", "workers: 4", func(u *action.Upgrade) { u.ForceConflicts = true }); err != nil {
		t.Fatal(err)
	}
	if now := h.configuration("fairlead-config"); !strings.Contains(now, "workers: 4") || strings.Contains(now, "debug") {
		t.Errorf("the ConfigMap has:\n%s", now)
	}
}

// Definitions that a release has left behind are still that one's: another one is told
// so, and has them after the commands of the documentation.
func TestKeptDefinitionIsAdoptedByAnotherRelease(t *testing.T) {
	h := newHelm(t)
	h.install("fairlead", "{}")
	h.served()
	uid := string(h.definition().UID)
	h.uninstall("fairlead")
	_, err := h.tryInstall("other", "{}")
	wantError(t, err, "invalid ownership metadata", crdName, `"fairlead"`)
	for _, args := range adoption(t, "other", h.namespace) {
		kubectl(t, args...)
	}
	h.install("other", "{}")
	h.owned("other", uid)
}

// Old and new operator of an upgrade share a lease, or the old one goes first: what
// would have two at work is refused, with the way out.
func TestAnUpgradeHasNoTwoOperatorsAtWork(t *testing.T) {
	h := newHelm(t)
	h.install("fairlead", "{}")
	refused := func(values string, texts ...string) {
		t.Helper()
		_, err := h.tryUpgrade("fairlead", values)
		wantError(t, err, texts...)
	}
	const wayOut = "Set strategy.type to Recreate for this upgrade"
	refused("leaderElection: {leaseName: other}", "does not share the lease other", wayOut)
	refused("fullnameOverride: lead", "would be named lead, and is fairlead", "uninstall the release")
	h.upgrade("fairlead", "strategy: {type: Recreate}\nleaderElection: {leaseName: other}")
	h.upgrade("fairlead", "leaderElection: {enabled: false}") // by default the old one goes first
	refused("leaderElection: {enabled: true}", "does not share the lease fairlead", wayOut)
	h.upgrade("fairlead", "strategy: {type: Recreate}")
	h.upgrade("fairlead", "replicas: 2\nwatchNamespaces: ["+h.namespace+"]")
	h.upgrade("fairlead", "fullnameOverride: lead\nleaderElection: {leaseName: fairlead}") // the lease is the same
}
