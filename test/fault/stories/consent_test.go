package stories

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/diff"
	"github.com/fairlead-dev/fairlead/internal/observe"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/system/doris"
)

// configured has claims, and frontends that read a ConfigMap; what becomes of a
// change of it is left to be said.
const configured = `
apiVersion: v1
kind: ConfigMap
metadata: {name: fe-conf}
data: {fe.conf: "enable_fqdn_mode = true\nqe_slow_log_ms = 5000\n"}
---
apiVersion: doris.selectdb.com/v1
kind: DorisCluster
metadata: {name: doris}
spec:
  configUpdatePolicy: POLICY
  feSpec:
    replicas: 1
    image: "apache/doris:fe-2.1.8"
    configMapInfo: {configMapName: fe-conf, resolveKey: fe.conf}
    persistentVolumes:
    - {name: meta, mountPath: /opt/apache-doris/fe/doris-meta, persistentVolumeClaimSpec: {resources: {requests: {storage: 1Gi}}}}
  beSpec:
    replicas: 1
    image: "apache/doris:be-2.1.8"
    persistentVolumes:
    - {name: data, mountPath: /opt/apache-doris/be/storage, persistentVolumeClaimSpec: {resources: {requests: {storage: 1Gi}}}}
`

// Stories of changes that are held until a person consents, and of one that is
// not.
var (
	configManual = tale{
		name: "ConfigMap change that is accepted (Manual)", setup: creates(strings.ReplaceAll(configured, "POLICY", "Manual")),
		act: inTurn(configures, approves), unsettled: carriedOut, replaced: 1,
	}
	configRestart = tale{
		name: "ConfigMap change (Restart)", setup: creates(strings.ReplaceAll(configured, "POLICY", "Restart")),
		act: configures, unsettled: carriedOut, replaced: 1,
	}
	accepting = tale{
		name: "what was found at the takeover of 3+3 is accepted", before: legacy(three, handEdited),
		setup: func(context.Context, *scene) error { return nil },
		act:   approves, unsettled: carriedOut, replaced: 1,
	}
	upgrading = tale{
		name: "a newer operator comes, and what it offers is accepted", setup: creates(one),
		act: inTurn(upgrades, approves), unsettled: carriedOut, replaced: 1,
	}
)

// upgrades puts a newer build of the operator in the place of the one that runs.
func upgrades(ctx context.Context, s *scene) error {
	s.op.upgrade()
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		dc, err := s.doris(ctx)
		if err != nil {
			return false, err
		}
		return apimeta.IsStatusConditionTrue(dc.Status.Conditions, meta.ConditionChangePending), nil
	})
}

func inTurn(acts ...func(context.Context, *scene) error) func(context.Context, *scene) error {
	return func(ctx context.Context, s *scene) error {
		for _, act := range acts {
			if err := act(ctx, s); err != nil {
				return err
			}
		}
		return nil
	}
}

// configures changes the ConfigMap as a person would.
func configures(ctx context.Context, s *scene) error {
	cm := &corev1.ConfigMap{}
	if err := s.client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "fe-conf"}, cm); err != nil {
		return err
	}
	cm.Data["fe.conf"] = strings.ReplaceAll(cm.Data["fe.conf"], "5000", "4000")
	return s.client.Update(ctx, cm, client.FieldOwner("a-person"))
}

// handEdited gives a set of a legacy cluster something that no revision renders.
func handEdited(set *appsv1.StatefulSet) {
	env := &set.Spec.Template.Spec.Containers[0].Env
	*env = append(*env, corev1.EnvVar{Name: "TZ", Value: "Europe/Lisbon"})
}

// plan is what the plugin would show.
func (s *scene) plan(ctx context.Context) (plan.Plan, error) {
	dc, err := s.doris(ctx)
	if err != nil {
		return plan.Plan{}, err
	}
	system := doris.New(diff.New(s.client.Scheme()))
	if s.op.newer() {
		system = system.WithFuture(newerRendering)
	}
	world, err := system.Observe(ctx, observe.Direct{Client: s.client, Owner: client.ObjectKeyFromObject(dc), Owners: doris.OwnerOf}, dc)
	if err != nil {
		return plan.Plan{}, err
	}
	return system.Plan(dc, world, time.Now())
}

// approves consents to all that is held.
func approves(ctx context.Context, s *scene) error {
	p, err := s.plan(ctx)
	if err != nil {
		return err
	}
	var digests []string
	for _, held := range p.HeldSets() {
		digests = append(digests, held.Approve)
	}
	if len(digests) == 0 {
		return fmt.Errorf("nothing is held: %v", p.Changes)
	}
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		dc, err := s.doris(ctx)
		if err != nil {
			return err
		}
		if dc.Annotations == nil {
			dc.Annotations = map[string]string{}
		}
		dc.Annotations[meta.AnnotationApprove] = strings.Join(digests, ",")
		return s.client.Update(ctx, dc, client.FieldOwner("a-person"))
	})
}

// carriedOut says what is left of the plan, besides what settledCluster says: a
// changed ConfigMap gives the cluster no other generation.
func carriedOut(ctx context.Context, s *scene) string {
	p, err := s.plan(ctx)
	switch {
	case err != nil:
		return err.Error()
	case !p.Settled():
		return fmt.Sprintf("the plan is not settled: %v", p.Changes)
	case len(p.HeldSets()) > 0:
		return fmt.Sprintf("changes are held: %v", p.Changes)
	}
	return settledCluster(ctx, s)
}
