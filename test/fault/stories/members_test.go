package stories

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
)

// observed has two frontends that do not vote, and whose claims go with them.
var observed = strings.Replace(strings.Replace(filled, "replicas: 1", "replicas: 3\n    electionNumber: 1\n    claimRetention: {whenScaledIn: Delete}", 1), "replicas: 3\n    image: \"apache/doris:be", "replicas: 1\n    image: \"apache/doris:be", 1)

// computing has a compute node, whose claim goes with it, and a broker beside the others.
var computing = filled + `  cnSpec:
    replicas: 1
    image: "apache/doris:be-2.1.8"
    configMapInfo: {configMapName: cn-conf}
    claimRetention: {whenRemoved: Delete}
    persistentVolumes:
    - {name: cache, mountPath: /opt/apache-doris/be/storage, persistentVolumeClaimSpec: {resources: {requests: {storage: 1Gi}}}}
  brokerSpec: {replicas: 1, image: "apache/doris:broker-2.1.8"}
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

// claimsOfFilled are the claims of the cluster that has rows.
var claimsOfFilled = []string{"data-doris-be-0", "data-doris-be-1", "data-doris-be-2", "meta-doris-fe-0"}

// withClaims says what is missing until these claims are there and no others.
func withClaims(unsettled func(context.Context, *scene) string, want ...string) func(context.Context, *scene) string {
	return func(ctx context.Context, s *scene) string {
		if missing := unsettled(ctx, s); missing != "" {
			return missing
		}
		claims := &corev1.PersistentVolumeClaimList{}
		if err := s.client.List(ctx, claims, client.InNamespace(s.namespace)); err != nil {
			return err.Error()
		}
		var names []string
		for _, c := range claims.Items {
			names = append(names, c.Name)
		}
		slices.Sort(names)
		if !slices.Equal(names, want) {
			return fmt.Sprintf("the claims are %v, and not %v", names, want)
		}
		return ""
	}
}

var (
	membersScaleOut = tale{
		name: "scale-out of a database from 1+3 to 1+5", database: true, setup: createsFilled, act: wantsBackends(5), unsettled: registeredAll(5),
	}
	observersLeave = tale{
		name: "scale-in of observers from 3+1 to 1+1", database: true, unsettled: withClaims(frontendsLeft(1), "data-doris-be-0", "meta-doris-fe-0"),
		setup: func(ctx context.Context, s *scene) error {
			if err := creates(observed)(ctx, s); err != nil {
				return err
			}
			return s.db.fill(ctx, 1)
		},
		act: edits(func(dc *dorisv1.DorisCluster) { dc.Spec.FeSpec.Replicas = new(int32(1)) }),
	}
	removed = tale{
		name: "brokers removed, and compute nodes", database: true,
		setup: func(ctx context.Context, s *scene) error {
			if err := creates(computing)(ctx, s); err != nil {
				return err
			}
			return s.db.fill(ctx, 4)
		},
		act: inTurn(edits(func(dc *dorisv1.DorisCluster) { dc.Spec.BrokerSpec = nil }), awaitsNo("doris-broker-0"),
			edits(func(dc *dorisv1.DorisCluster) { dc.Spec.CnSpec = nil })),
		unsettled: withClaims(func(ctx context.Context, s *scene) string {
			if missing := holdsAll(3)(ctx, s); missing != "" {
				return missing
			}
			if brokers, err := s.db.column(ctx, "SHOW BROKER", "Host"); err != nil || len(brokers) > 0 {
				return fmt.Sprintf("brokers are %v, %v", brokers, err)
			}
			return ""
		}, claimsOfFilled...),
	}
	passwordRotated  = rotating("")
	deletedInScaleIn = tale{
		name: "deleted while backends leave", database: true, setup: createsFilled, unsettled: withClaims(gone, claimsOfFilled...), deletes: true,
		act: inTurn(beginsScaleIn, deletes),
	}
)

// awaitsNo waits until a Pod is gone.
func awaitsNo(pod string) func(context.Context, *scene) error {
	return func(ctx context.Context, s *scene) error {
		s.op.launch()
		return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
			err := s.client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: pod}, &corev1.Pod{})
			return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		})
	}
}

// rotating is the story in which the password of the operator's account is another one,
// and the database is spoilt before the Secret says so.
func rotating(spoilt string) tale {
	return tale{
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
		act: inTurn(says(`SET PASSWORD FOR 'fairlead' = PASSWORD('second')`), spoils(spoilt), func(ctx context.Context, s *scene) error {
			secret := &corev1.Secret{}
			if err := s.client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "operator-account"}, secret); err != nil {
				return err
			}
			secret.Data["password"] = []byte("second")
			return s.client.Update(ctx, secret)
		}, wantsBackends(1)),
	}
}

// says lets the database carry a statement out.
func says(statement string) func(context.Context, *scene) error {
	return func(ctx context.Context, s *scene) error { return s.db.exec(ctx, statement) }
}

// spoils lets the frontend go wrong in ways of its own; in none, if the text is empty.
func spoils(text string) func(context.Context, *scene) error {
	return func(_ context.Context, s *scene) error {
		s.db.mu.Lock()
		defer s.db.mu.Unlock()
		return s.db.first.Faults.Parse(text)
	}
}

// spoilt tells a story with a database that goes wrong from where members come or go.
func spoilt(story tale, text string) tale {
	switch story.name {
	case passwordRotated.name:
		story = rotating(text)
	case scaleInCancelled.name:
		story = cancelling(text)
	case deletedInScaleIn.name:
		story.act = inTurn(beginsScaleIn, spoils(text), deletes)
	default:
		story.act = inTurn(spoils(text), story.act)
	}
	story.name += " with the database spoilt by " + text
	return story
}

// memberTales are the stories in which members come and go.
func memberTales() []tale {
	return []tale{membersScaleOut, scaleIn, scaleInCancelled, observersLeave, followersLeave, followerRegistersAnew, removed, passwordRotated, deletedInScaleIn, endpointsGiven, endpointsTakenBack}
}

// TestMembersKilled kills the operator around writes of stories in which members come
// and go.
func TestMembersKilled(t *testing.T) {
	s := onStage(t)
	some := map[string][]int{
		scaleIn.name: {1, 3}, scaleInCancelled.name: {5},
	}
	for _, story := range memberTales() {
		t.Run(story.name, func(t *testing.T) {
			reference := s.undisturbed(t, story)
			at := some[story.name]
			switch {
			case all():
				at = upTo(0, len(reference.writes)+1)
			case at == nil:
				at = []int{2}
			}
			s.sweep(t, reference, kills(story, at...))
		})
	}
}

// TestMembersWithoutAnswers has SQL hang, be refused, or lose its answer after the
// statement was carried out, in each of the stories, and has the operator killed at
// writes meanwhile.
func TestMembersWithoutAnswers(t *testing.T) {
	s := onStage(t)
	some := map[string][]string{
		membersScaleOut.name: {"hang:8s"}, observersLeave.name: {"lose-answer"}, removed.name: {"refuse:8s"}, passwordRotated.name: {"lose-answer"},
		scaleIn.name: {"hang:8s", "refuse:8s", "lose-answer", "wrong-password:8s", "unhealthy-tablets:8s"},
	}
	for _, story := range memberTales() {
		faults := some[story.name]
		if all() {
			faults = []string{"hang:8s", "refuse:8s", "lose-answer", "wrong-password:8s", "unhealthy-tablets:8s"}
		}
		if len(faults) == 0 {
			continue
		}
		t.Run(story.name, func(t *testing.T) {
			reference := s.undisturbed(t, story)
			var runs []run
			for i, fault := range faults {
				with := spoilt(story, fault)
				runs = append(runs, run{tale: with})
				if all() && i < 3 && (story.name == scaleIn.name || story.name == observersLeave.name) {
					runs = append(runs, kills(with, upTo(1, len(reference.writes))...)...)
				}
			}
			if !all() && story.name == scaleIn.name {
				runs = append(runs, kills(spoilt(story, "lose-answer"), 2)...)
			}
			s.hold(t, reference, runs, s.performAll(t.Context(), runs))
		})
	}
}
