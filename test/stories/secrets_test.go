package stories

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

const canary = "Canary-7f3a9d-do-not-tell"

// secretive names a Secret with the canary in every place where a Secret can be
// named, and has a second cluster with the password in the deprecated field.
const secretive = `
apiVersion: v1
kind: Secret
metadata: {name: login}
type: kubernetes.io/basic-auth
stringData: {username: keeper, password: CANARY}
---
apiVersion: v1
kind: Secret
metadata: {name: keytabs}
stringData: {doris.keytab: CANARY}
---
apiVersion: v1
kind: Secret
metadata: {name: certs}
stringData: {token: CANARY}
---
apiVersion: v1
kind: Secret
metadata: {name: pull}
type: kubernetes.io/dockerconfigjson
stringData: {.dockerconfigjson: '{"auths":{"registry.example.org":{"auth":"CANARY"}}}'}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: realm}
data: {krb5.conf: "[libdefaults]"}
---
apiVersion: doris.selectdb.com/v1
kind: DorisCluster
metadata: {name: secretive}
spec:
  authSecret: login
  kerberosInfo: {krb5ConfigMap: realm, keytabSecretName: keytabs}
  feSpec:
    replicas: 1
    image: "apache/doris:fe-2.1.8"
    imagePullSecrets: [{name: pull}]
    secrets: [{secretName: certs, mountPath: /etc/certs}]
    envVars: [{name: TOKEN, valueFrom: {secretKeyRef: {name: certs, key: token}}}]
  beSpec:
    replicas: 1
    image: "apache/doris:be-2.1.8"
    imagePullSecrets: [{name: pull}]
    secrets: [{secretName: certs, mountPath: /etc/certs}]
    envVars: [{name: TOKEN, valueFrom: {secretKeyRef: {name: certs, key: token}}}]
---
apiVersion: doris.selectdb.com/v1
kind: DorisCluster
metadata: {name: old-habits}
spec:
  adminUser: {name: keeper, password: CANARY}
  feSpec: {replicas: 1, image: "apache/doris:fe-2.1.8"}
  beSpec: {replicas: 1, image: "apache/doris:be-2.1.8"}
`

// TestNoSecretIsTold puts a password into every Secret that can be named, has
// clusters live a little, and looks for it everywhere but in Secrets and in
// what the user wrote.
func TestNoSecretIsTold(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	op := s.operate()
	s.create(strings.ReplaceAll(secretive, "CANARY", canary))
	s.settled("secretive")
	s.settled("old-habits")
	// A rolling restart, another password, a refusal and a missing Secret.
	second := canary + "-2"
	s.edit("old-habits", func(dc *dorisv1.DorisCluster) {
		dc.Spec.AdminUser.Password, dc.Spec.BeSpec.Image = second, "apache/doris:be-3.0.5"
	})
	change(s, "login", &corev1.Secret{}, func(o *corev1.Secret) { o.Data["password"] = []byte(second) })
	s.settled("old-habits")
	change(s, "certs", &corev1.Secret{}, func(o *corev1.Secret) { o.Data["token"] = []byte(second) })
	s.says("secretive", meta.ConditionChangePending, metav1.ConditionTrue, "Secret/certs")
	s.edit("secretive", func(dc *dorisv1.DorisCluster) { dc.Spec.AuthSecret = "nowhere" })
	s.edit("old-habits", func(dc *dorisv1.DorisCluster) { dc.Spec.BeSpec.Image = "" })
	s.quiet(2 * time.Second)

	secret := &corev1.Secret{}
	s.get("login", secret)
	if !tells(t, secret) {
		t.Fatal("the canary is not found where it is: this test sees nothing")
	}
	s.get("old-habits-admin-user", secret)
	if !tells(t, secret) {
		t.Error("the account does not reach the Secret that the Pods mount")
	}
	for _, list := range []client.ObjectList{
		&corev1.PodList{}, &appsv1.StatefulSetList{}, &appsv1.ControllerRevisionList{}, &corev1.ServiceList{}, &corev1.ConfigMapList{},
		&corev1.EventList{}, &eventsv1.EventList{}, &corev1.PersistentVolumeClaimList{}, &discoveryv1.EndpointSliceList{}, &dorisv1.DorisClusterList{},
	} {
		s.scan(list)
	}
	if strings.Contains(op.logged(), canary) {
		t.Error("the operator's log tells it")
	}
	if metrics := op.metrics(); strings.Contains(metrics, canary) || !strings.Contains(metrics, "fairlead_reconcile_total") {
		t.Error("the metrics tell it, or are none of ours")
	}
}

// TestChangedSecret rotates a certificate that backends mount: held under Manual,
// and once accepted, or under Restart, the backends are replaced and nobody else.
func TestChangedSecret(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.operate()
	s.create(`
apiVersion: v1
kind: Secret
metadata: {name: certs}
stringData: {tls.crt: first, tls.key: first}
---` + strings.Replace(three, `image: "apache/doris:be-2.1.8"`, `image: "apache/doris:be-2.1.8"
    secrets: [{secretName: certs, mountPath: /etc/certs}]`, 1))
	s.settled("doris")
	rotate := func(value string) {
		change(s, "certs", &corev1.Secret{}, func(o *corev1.Secret) { o.Data["tls.key"] = []byte(value) })
	}
	backends := []string{"doris-be-2", "doris-be-1", "doris-be-0"}
	rotate("second")
	s.says("doris", meta.ConditionChangePending, metav1.ConditionTrue, "Secret/certs")
	s.quiet(2 * time.Second)
	if went := s.history.Went(); len(went) > 0 {
		t.Errorf("held, and %v went", went)
	}
	p := s.plannedBy(s.present(), "doris") // which sees no Secret's content, and has the same digest
	s.approve("doris", s.digest(p, "Secret/certs", plan.CauseConfig))
	s.wentSoFar(3)
	s.settled("doris")
	s.edit("doris", func(dc *dorisv1.DorisCluster) { dc.Spec.ConfigUpdatePolicy = dorisv1.ConfigUpdateRestart })
	s.quiet(2 * time.Second)
	rotate("third")
	s.wentSoFar(6)
	s.settled("doris")
	change(s, "certs", &corev1.Secret{}, func(o *corev1.Secret) { o.Labels = map[string]string{"rotated-by": "somebody"} })
	s.quiet(2 * time.Second)
	if diff := cmp.Diff(slices.Concat(backends, backends), s.history.Went()); diff != "" {
		t.Errorf("Pods that went (-want +got):\n%s", diff)
	}
}

func (s *scene) scan(list client.ObjectList) {
	s.Helper()
	if err := s.client.List(s.Context(), list, client.InNamespace(s.namespace)); err != nil {
		s.Fatal(err)
	}
	items, err := apimeta.ExtractList(list)
	if err != nil {
		s.Fatal(err)
	}
	if _, none := list.(*corev1.PersistentVolumeClaimList); len(items) == 0 && !none {
		s.Errorf("there is no %T to look at", list)
	}
	for _, it := range items {
		o := it.(client.Object)
		if dc, ok := o.(*dorisv1.DorisCluster); ok && dc.Spec.AdminUser != nil {
			dc.Spec.AdminUser.Password = "" // the user wrote it there
		}
		if tells(s.T, o) {
			s.Errorf("%T %s tells the canary", o, o.GetName())
		}
	}
}

// tells looks for the canary in clear and in base64.
func tells(t *testing.T, o any) bool {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	// The first bytes of the encoding do not depend on what follows.
	encoded := base64.StdEncoding.EncodeToString([]byte(canary))[:24]
	return strings.Contains(string(text), canary) || strings.Contains(string(text), encoded)
}
