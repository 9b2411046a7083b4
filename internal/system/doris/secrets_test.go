package doris

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// withSecrets has backends that mount one Secret and are given a key of another, and an
// account.
var withSecrets = `
apiVersion: v1
kind: Secret
metadata: {name: certs}
data: {tls.crt: Zmlyc3Q=, tls.key: Zmlyc3Q=}
---
apiVersion: v1
kind: Secret
metadata: {name: tokens}
data: {used: Zmlyc3Q=, unused: Zmlyc3Q=}
---
apiVersion: v1
kind: Secret
metadata: {name: login}
data: {username: cm9vdA==, password: Zmlyc3Q=}
---` + strings.NewReplacer("spec:\n", "spec:\n  authSecret: login\n", `image: "apache/doris:be-1"`, `image: "apache/doris:be-1", secrets: [{secretName: certs, mountPath: /etc/certs}], envVars: [{name: TOKEN, valueFrom: {secretKeyRef: {name: tokens, key: used}}}]`).Replace(threeByThree)

// reading lets the operator of a world read Secrets; reads counts how often it did.
func (w *world) reading() (reads *int) {
	reads = new(int)
	w.system = w.system.ReadingSecrets(func(_ context.Context, _, name string) (map[string][]byte, error) {
		*reads++
		return object(w, name, &corev1.Secret{}).Data, nil
	})
	w.system.digests.random = new(endless)
	return reads
}

// endless is no source of randomness: what is drawn is known, and always another one.
type endless byte

func (e *endless) Read(p []byte) (int, error) {
	copy(p, bytes.Repeat([]byte{'A' + byte(*e)%16}, len(p)))
	*e++
	return len(p), nil
}

func (w *world) rotate(secret, key string) {
	w.Helper()
	stranger(w, secret, &corev1.Secret{}, func(s *corev1.Secret) { s.Data[key] = []byte("second, which is secret") })
}

func (w *world) keepsSecrets(t *testing.T) (reads *int) {
	t.Helper()
	reads = w.reading()
	if p := w.settle(); len(p.Changes) > 0 {
		t.Fatalf("a settled cluster has changes:\n%s", printPlan(p))
	}
	return reads
}

func (w *world) went(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, w.evicts); diff != "" {
		t.Errorf("Pods that went (-want +got):\n%s", diff)
	}
	w.evicts = nil
}

var readers = []string{"doris-be-2", "doris-be-1", "doris-be-0"}

func withPolicy(policy dorisv1.ConfigUpdatePolicy) func(*dorisv1.DorisClusterSpec) {
	return func(s *dorisv1.DorisClusterSpec) { s.ConfigUpdatePolicy = policy }
}

func TestAChangedSecretIsHeldUntilAPersonAccepts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withSecrets)
	w.keepsSecrets(t)
	w.rotate("certs", "tls.key")
	p := w.settle()
	w.went(t)
	held := p.HeldSets()
	if len(held) != 1 || held[0].Changes[0].Object.String() != "Secret/certs" || !strings.HasPrefix(held[0].Changes[0].Message, "changed: tls.key; the Pods of be") {
		t.Fatalf("held: %+v", held)
	}
	if got := condition(w.dc, meta.ConditionChangePending); !strings.HasPrefix(got, "True") {
		t.Errorf("ChangePending is %q", got)
	}
	w.asks(map[string]string{meta.AnnotationApprove: held[0].Approve})
	p = w.settle()
	w.went(t, readers...)
	if len(p.Held()) > 0 {
		t.Errorf("afterwards there is held\n%s", printPlan(p))
	}
}

func TestWhatAChangedSecretMoves(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		policy dorisv1.ConfigUpdatePolicy
		change func(*world)
		want   []string
	}{
		{"Restart: a mounted key restarts the component that mounts it", dorisv1.ConfigUpdateRestart, func(w *world) { w.rotate("certs", "tls.key") }, readers},
		{"Auto: as under Restart, since a process reads it when it starts", dorisv1.ConfigUpdateAuto, func(w *world) { w.rotate("certs", "tls.key") }, readers},
		{"a key in the environment restarts", dorisv1.ConfigUpdateRestart, func(w *world) { w.rotate("tokens", "used") }, readers},
		{"another key of the same Secret does not", dorisv1.ConfigUpdateRestart, func(w *world) { w.rotate("tokens", "unused") }, nil},
		{"the account is followed without a restart", dorisv1.ConfigUpdateRestart, func(w *world) { w.rotate("login", "password") }, nil},
		{"labels of a Secret are no content", dorisv1.ConfigUpdateRestart, func(w *world) {
			stranger(w, "certs", &corev1.Secret{}, func(s *corev1.Secret) { s.Labels = map[string]string{"a": "b"} })
		}, nil},
		{"a Secret that is gone moves nothing", dorisv1.ConfigUpdateRestart, func(w *world) {
			w.must(w.store.Delete(keyOf(object(w, "tokens", &corev1.Secret{})), "", false))
		}, nil},
		{"without the key that digests are made with nothing can be told, and nothing moves", dorisv1.ConfigUpdateRestart, func(w *world) {
			key := object(w, "doris-secret-digests", &corev1.Secret{})
			w.must(w.store.Delete(keyOf(key), key.UID, false))
			w.rotate("certs", "tls.key")
		}, nil},
	} {
		for _, found := range []bool{false, true} {
			name := c.name
			if found {
				name += " (taken over)"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, withSecrets)
				if found {
					w = legacy(t, withSecrets, nil)
				}
				w.edit(withPolicy(c.policy))
				reads := w.reading()
				w.settle()
				template := w.templateOf("doris-fe")
				*reads = 0
				c.change(w)
				w.settle()
				w.went(t, c.want...)
				if diff := cmp.Diff(template, w.templateOf("doris-fe")); diff != "" {
					t.Errorf("the frontends' template (-before +after):\n%s", diff)
				}
				*reads = 0
				w.system = w.system.ReadingSecrets(func(context.Context, string, string) (map[string][]byte, error) {
					*reads++
					return nil, nil
				})
				w.settle()
				if *reads > 0 {
					t.Errorf("at rest Secrets are read %d times", *reads)
				}
			})
		}
	}
}

func TestSecretsAreRecordedWithoutARestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withSecrets)
	w.edit(withPolicy(dorisv1.ConfigUpdateRestart))
	w.keepsSecrets(t)
	before := object(w, "doris-be", &appsv1.StatefulSet{})
	stranger(w, "doris-be", &appsv1.StatefulSet{}, func(s *appsv1.StatefulSet) { // as an older operator left it
		recorded, _ := readAccepted(s)
		recorded.Secrets = nil
		s.Annotations[meta.AnnotationAccepted] = recorded.String()
	})
	w.dc.Status.Workloads = nil
	w.settle()
	w.went(t)
	after := object(w, "doris-be", &appsv1.StatefulSet{})
	if diff := cmp.Diff(before.Spec, after.Spec); diff != "" {
		t.Errorf("the set (-before +after):\n%s", diff)
	}
	if recorded, _ := readAccepted(after); recorded.Secrets == nil {
		t.Error("nothing is recorded")
	}
}

func TestARotatedSecretMendsARollThatStopped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withSecrets)
	w.edit(withPolicy(dorisv1.ConfigUpdateRestart))
	w.keepsSecrets(t)
	badRoll(t, w)
	w.rotate("certs", "tls.key")
	w.settle()
	if len(w.evicts) == 0 {
		t.Error("the same is not tried again, though what it starts with is different")
	}
}

func TestNoValueOfASecretIsInAPlanOrARecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withSecrets)
	w.edit(withPolicy(dorisv1.ConfigUpdateRestart))
	w.keepsSecrets(t)
	w.rotate("certs", "tls.key")
	p, observed := w.plan(w.store.Now())
	text, err := json.Marshal([]any{p.Changes, p.Findings, observed.ProcessSecrets.Digests, observed.ProcessSecrets.Versions})
	w.must(err)
	for _, s := range p.Steps {
		if a, is := s.(plan.Apply); is {
			more, err := json.Marshal(a.Object)
			w.must(err)
			text = slices.Concat(text, more)
		}
	}
	for _, value := range []string{"which is secret", "c2Vjb25k", strings.Repeat("A", digestKeySize)} {
		if bytes.Contains(text, []byte(value)) {
			t.Errorf("%q is told:\n%s", value, text)
		}
	}
}

func TestWithoutSightOfSecretsThePlanGoesByTheirVersions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withSecrets)
	w.keepsSecrets(t)
	w.rotate("certs", "tls.key")
	digest := w.reconcile().HeldSets()[0].Approve
	w.system = New(testEngine)
	p, _ := w.plan(w.store.Now())
	if held := p.HeldSets(); len(held) != 1 || held[0].Approve != digest {
		t.Errorf("held: %+v, and the operator holds %s", held, digest)
	}
}

func TestDigestsOfSecretsAreForgotten(t *testing.T) {
	t.Parallel()
	kept := func(w *world) []string { return sortedKeys(w.system.digests.last[w.clusterKey()]) }
	for _, c := range []struct {
		name string
		then func(*world)
		want []string
	}{
		{"while a change is held they are kept", func(w *world) { w.settle() }, []string{"certs"}},
		{"when the Pods have read it", func(w *world) { w.edit(withPolicy(dorisv1.ConfigUpdateRestart)); w.settle() }, nil},
		{"when nothing names the Secret any more", func(w *world) {
			w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Secrets, s.BeSpec.EnvVars = nil, nil })
			w.reconcile()
		}, nil},
		{"when the Secret is gone", func(w *world) {
			w.must(w.store.Delete(keyOf(object(w, "certs", &corev1.Secret{})), "", false))
			w.reconcile()
		}, nil},
		{"when the cluster is gone", func(w *world) { w.system.Forget(w.clusterKey()) }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, withSecrets)
			w.keepsSecrets(t)
			w.rotate("certs", "tls.key")
			if w.settle(); len(kept(w)) != 1 {
				t.Fatalf("before there are those of %v", kept(w))
			}
			c.then(w)
			if got := kept(w); !slices.Equal(got, c.want) {
				t.Errorf("kept are those of %v, want %v", got, c.want)
			}
			if len(c.want) == 0 && len(w.system.digests.last) > 0 {
				t.Errorf("something is left: %v", w.system.digests.last)
			}
		})
	}
}

func (w *world) clusterKey() types.NamespacedName {
	return types.NamespacedName{Namespace: w.dc.Namespace, Name: w.dc.Name}
}
