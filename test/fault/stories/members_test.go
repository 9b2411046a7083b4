package stories

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
)

// observed has two frontends that do not vote.
var observed = strings.Replace(strings.Replace(filled, "replicas: 1", "replicas: 3\n    electionNumber: 1", 1), "replicas: 3\n    image: \"apache/doris:be", "replicas: 1\n    image: \"apache/doris:be", 1)

// computing has a compute node and a broker beside the others.
var computing = filled + `  cnSpec: {replicas: 1, image: "apache/doris:be-2.1.8", configMapInfo: {configMapName: cn-conf}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: cn-conf}
data: {be.conf: "be_node_role = computation"}
`

// account is the Secret of the operator's account, which is none of the entrypoint's.
func account(password string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "operator-account"}, Type: corev1.SecretTypeBasicAuth,
		StringData: map[string]string{"username": "fairlead", "password": password},
	}
}

// frontendsLeft says what is missing until the database knows n frontends.
func frontendsLeft(n int) func(context.Context, *scene) string {
	return func(ctx context.Context, s *scene) string {
		if missing := settledCluster(ctx, s); missing != "" {
			return missing
		}
		if hosts, err := s.db.column(ctx, "SHOW FRONTENDS", "Host"); err != nil || len(hosts) != n {
			return fmt.Sprintf("frontends are %v, %v", hosts, err)
		}
		return ""
	}
}

// registeredAll says what is missing until n backends are left, and the operator has
// seen that they are members.
func registeredAll(n int) func(context.Context, *scene) string {
	return func(ctx context.Context, s *scene) string {
		if missing := holdsAll(n)(ctx, s); missing != "" {
			return missing
		}
		dc, err := s.doris(ctx)
		if err != nil {
			return err.Error()
		}
		if got := dc.Status.BeStatus.RegisteredInstances; len(got) != n {
			return fmt.Sprintf("seen as members are %v", got)
		}
		return ""
	}
}

var (
	membersScaleOut = tale{
		name: "scale-out of a database from 1+3 to 1+5", database: true, setup: createsFilled, act: wantsBackends(5), unsettled: registeredAll(5),
	}
	observersLeave = tale{
		name: "scale-in of observers from 3+1 to 1+1", database: true, unsettled: frontendsLeft(1),
		setup: func(ctx context.Context, s *scene) error {
			if err := creates(observed)(ctx, s); err != nil {
				return err
			}
			return s.db.fill(ctx, 1)
		},
		act: edits(func(dc *dorisv1.DorisCluster) { dc.Spec.FeSpec.Replicas = new(int32(1)) }),
	}
	computeRemoved = tale{
		name: "compute nodes removed", database: true, unsettled: holdsAll(3),
		setup: func(ctx context.Context, s *scene) error {
			if err := creates(computing)(ctx, s); err != nil {
				return err
			}
			return s.db.fill(ctx, 4)
		},
		act: edits(func(dc *dorisv1.DorisCluster) { dc.Spec.CnSpec = nil }),
	}
	passwordRotated = tale{
		name: "password rotated, then scale-in", database: true, unsettled: holdsAll(1),
		setup: func(ctx context.Context, s *scene) error {
			secret := account("first")
			secret.Namespace = s.namespace
			if err := s.client.Create(ctx, secret); err != nil {
				return err
			}
			if err := creates(strings.Replace(filled, "spec:\n", "spec:\n  authSecret: operator-account\n", 1))(ctx, s); err != nil {
				return err
			}
			if err := s.db.fill(ctx, 3); err != nil {
				return err
			}
			for _, statement := range []string{`CREATE USER 'fairlead' IDENTIFIED BY 'first'`, `GRANT NODE_PRIV, ADMIN_PRIV ON *.*.* TO 'fairlead'`} {
				if err := s.db.exec(ctx, statement); err != nil {
					return err
				}
			}
			return nil
		},
		act: func(ctx context.Context, s *scene) error {
			if err := s.db.exec(ctx, `SET PASSWORD FOR 'fairlead' = PASSWORD('second')`); err != nil {
				return err
			}
			secret := &corev1.Secret{}
			if err := s.client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "operator-account"}, secret); err != nil {
				return err
			}
			secret.Data["password"] = []byte("second")
			if err := s.client.Update(ctx, secret); err != nil {
				return err
			}
			return wantsBackends(1)(ctx, s)
		},
	}
)

// TestMembersKilled kills the operator around writes of stories in which members come
// and go.
func TestMembersKilled(t *testing.T) {
	s := onStage(t)
	for _, story := range []tale{membersScaleOut, observersLeave, computeRemoved, passwordRotated} {
		t.Run(story.name, func(t *testing.T) {
			reference := s.undisturbed(t, story)
			at := []int{1, 2}
			if all() {
				at = upTo(0, len(reference.writes)+1)
			}
			s.sweep(t, reference, kills(story, at...))
		})
	}
}

// TestScaleInKilledWithoutAnswers kills the operator at a write while SQL hangs, is
// refused, or loses its answer after the statement was carried out.
func TestScaleInKilledWithoutAnswers(t *testing.T) {
	s := onStage(t)
	for _, story := range []tale{scaleIn, observersLeave} {
		t.Run(story.name, func(t *testing.T) {
			reference := s.undisturbed(t, story)
			at := []int{2}
			if all() {
				at = upTo(1, len(reference.writes))
			}
			var runs []run
			for _, spoilt := range []string{"hang:8s", "refuse:8s", "lose-answer"} {
				with := story
				with.name += " with the database spoilt by " + spoilt
				with.act = func(ctx context.Context, s *scene) error {
					if err := s.db.cluster.FEs[0].Faults.Parse(spoilt); err != nil {
						return fmt.Errorf("spoil the frontend: %w", err)
					}
					return story.act(ctx, s)
				}
				runs = append(runs, kills(with, at...)...)
			}
			s.sweep(t, reference, runs)
		})
	}
}
