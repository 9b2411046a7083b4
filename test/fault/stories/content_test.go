package stories

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/api/meta"
)

// certified has backends that mount a Secret.
var certified = `
apiVersion: v1
kind: Secret
metadata: {name: certs}
stringData: {tls.crt: first, tls.key: first}
---` + strings.Replace(configured, `image: "apache/doris:be-2.1.8"`, `image: "apache/doris:be-2.1.8"
    secrets: [{secretName: certs, mountPath: /etc/certs}]`, 1)

// asked has nodes that can be asked, with an account, and files for all of them.
var asked = `
apiVersion: v1
kind: Secret
metadata: {name: admin}
type: kubernetes.io/basic-auth
stringData: {username: op, password: only-a-test-double}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: be-conf}
data: {be.conf: "max_tablet_version_num = 2500\n"}
---` + strings.NewReplacer("configUpdatePolicy: POLICY", "configUpdatePolicy: Auto\n  authSecret: admin",
	`image: "apache/doris:be-2.1.8"`, `image: "apache/doris:be-2.1.8"
    configMapInfo: {configMapName: be-conf, resolveKey: be.conf}`).Replace(configured)

// Stories of content that changes, besides those of a ConfigMap alone.
var (
	secretManual = tale{
		name: "Secret change that is accepted (Manual)", setup: creates(strings.ReplaceAll(certified, "POLICY", "Manual")),
		act: inTurn(rotates, approves), unsettled: carriedOut, replaced: 1,
	}
	secretRestart = tale{
		name: "Secret change (Restart)", setup: creates(strings.ReplaceAll(certified, "POLICY", "Restart")),
		act: rotates, unsettled: carriedOut, replaced: 1,
	}
	configAuto = tale{
		name: "ConfigMap changes that running processes take (Auto)", setup: createsAsked, processes: true,
		act: inTurn(configures, reconfigures("max_tablet_version_num = 3000\n")), unsettled: inEffect(1),
	}
	configAutoRestart = tale{
		name: "ConfigMap changes of which one needs a start (Auto)", setup: createsAsked, processes: true,
		act:       inTurn(configures, reconfigures("max_tablet_version_num = 3000\npriority_networks = 10.0.0.0/8\n")),
		unsettled: inEffect(2), replaced: 1,
	}
)

// rotates changes a key of the Secret as a person would.
func rotates(ctx context.Context, s *scene) error {
	secret := &corev1.Secret{}
	if err := s.client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "certs"}, secret); err != nil {
		return err
	}
	secret.Data["tls.key"] = []byte("second")
	return s.client.Update(ctx, secret, client.FieldOwner("a-person"))
}

// reconfigures changes the file of the backends as a person would.
func reconfigures(text string) func(context.Context, *scene) error {
	return func(ctx context.Context, s *scene) error {
		cm := &corev1.ConfigMap{}
		if err := s.client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "be-conf"}, cm); err != nil {
			return err
		}
		cm.Data["be.conf"] = text
		return s.client.Update(ctx, cm, client.FieldOwner("a-person"))
	}
}

// createsAsked makes the cluster, and the account that the operator logs in with.
func createsAsked(ctx context.Context, s *scene) error {
	if err := creates(asked)(ctx, s); err != nil {
		return err
	}
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		_, err := s.processes.Settings(ctx, "doris-fe-0")
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("the frontend does not answer: %w", err)
	}
	return s.processes.AddUser(ctx, "op", "only-a-test-double")
}

// inEffect says what is missing until all processes have the settings, and those of
// the backend were started so often; the frontend's is started once.
func inEffect(backend int) func(context.Context, *scene) string {
	return func(ctx context.Context, s *scene) string {
		if missing := carriedOut(ctx, s); missing != "" {
			return missing
		}
		dc, err := s.doris(ctx)
		if err != nil {
			return err.Error()
		}
		switch {
		case !apimeta.IsStatusConditionTrue(dc.Status.Conditions, meta.ConditionConfigurationInSync):
			return fmt.Sprintf("the configuration is not in sync: %v", dc.Status.Conditions)
		case !s.processes.Effective(ctx, "doris-fe-0", "qe_slow_log_ms", "4000"):
			return "the frontend does not have its setting"
		case !s.processes.Effective(ctx, "doris-be-0", "max_tablet_version_num", "3000"):
			return "the backend does not have its setting"
		}
		if fe, be := s.processes.Started([]string{"doris-fe-0"}), s.processes.Started([]string{"doris-be-0"}); fe != 1 || be != backend {
			return fmt.Sprintf("the frontend was started %d times, and the backend %d", fe, be)
		}
		return ""
	}
}

// TestContentKilled kills the operator around writes of stories in which content
// changes.
func TestContentKilled(t *testing.T) {
	s := onStage(t)
	some := map[string][]int{configAuto.name: {2}, secretRestart.name: {1}}
	for _, story := range []tale{configAuto, configAutoRestart, secretManual, secretRestart} {
		t.Run(story.name, func(t *testing.T) {
			at := some[story.name]
			if at == nil && !all() {
				t.Skip("FAIRLEAD_FAULT=all runs it")
			}
			reference := s.undisturbed(t, story)
			if all() {
				at = upTo(0, len(reference.writes)+1)
			}
			s.sweep(t, reference, kills(story, at...))
		})
	}
}
