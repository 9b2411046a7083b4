package takeover_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/system/doris"
	"github.com/fairlead-dev/fairlead/test/demo"
	"github.com/fairlead-dev/fairlead/test/story"
)

// legacyManager is the field manager of the operator that made the cluster. It
// writes by POST and PUT, so all fields are those of updates.
const legacyManager = "dorisoperator"

const pair = `
apiVersion: doris.selectdb.com/v1
kind: DorisCluster
metadata: {name: ` + demo.Name + `, namespace: ` + demo.Namespace + `}
spec:
  feSpec:
    replicas: 1
    image: apache/doris:fe-2.1.8
    requests: {cpu: 50m, memory: 64Mi}
    limits: {memory: 256Mi}
    persistentVolumes:
    - {name: meta, mountPath: /opt/apache-doris/fe/doris-meta, persistentVolumeClaimSpec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}
  beSpec:
    replicas: 2
    skipDefaultSystemInit: true
    image: apache/doris:be-2.1.8
    requests: {cpu: 50m, memory: 64Mi}
    limits: {memory: 256Mi}
    persistentVolumes:
    - {name: data, mountPath: /opt/apache-doris/be/storage, persistentVolumeClaimSpec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}
`

// legacy makes the cluster as the existing operator would have, which renders
// revision 0, and waits until it serves: backends come after a frontend does.
func (f *found) legacy(ctx context.Context) {
	f.Helper()
	f.must(f.client.Create(ctx, &story.Documents(pair)[0]))
	dc := &dorisv1.DorisCluster{}
	f.must(f.client.Get(ctx, client.ObjectKey{Namespace: demo.Namespace, Name: demo.Name}, dc))
	objects, findings := doris.Desired(dc, doris.Inputs{Revision: 0})
	f.Logf("findings of revision 0: %v", findings)
	for _, c := range objects.Components {
		set := c.StatefulSet
		set.Spec.Replicas = &c.FullReplicas
		set.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{
			Type:          appsv1.RollingUpdateStatefulSetStrategyType,
			RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32(0))},
		}
		made := []client.Object{set}
		for _, service := range c.Services {
			made = append(made, service)
		}
		for _, o := range made {
			o.SetAnnotations(map[string]string{"app.doris.components/hash": "1134323285"}) // and none of ours
			o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: dorisv1.GroupVersion.String(), Kind: dorisv1.Kind, Name: dc.Name, UID: dc.UID}})
			f.must(f.client.Create(ctx, o, client.FieldOwner(legacyManager)))
		}
		f.await(ctx, "all Pods serve", f.notServing)
	}
	live, err := f.AwaitBackends(ctx, 2, time.Minute)
	f.must(err)
	f.Sayf("a cluster of another operator serves; its live backends are %s", strings.Join(live, ", "))
	f.must(f.WriteCopies(ctx, 2)) // so that one backend can go
}

// notServing says which set has not all its Pods ready.
func (f *found) notServing(ctx context.Context) string {
	for _, set := range f.sets(ctx) {
		if set.Status.ObservedGeneration != set.Generation || set.Status.ReadyReplicas != *set.Spec.Replicas {
			return set.Name + " does not"
		}
	}
	return ""
}

// workloads are the templates, claim templates, replicas and revisions of the
// sets, word for word.
func (f *found) workloads(ctx context.Context) map[string]string {
	f.Helper()
	out := map[string]string{}
	for _, set := range f.sets(ctx) {
		text, err := json.Marshal([]any{set.Spec.Template, set.Spec.VolumeClaimTemplates, set.Spec.Replicas, set.Status.CurrentRevision, set.Status.UpdateRevision})
		f.must(err)
		out[set.Name] = string(text)
	}
	return out
}

// asking is a client that asks the database once a second, through the Service of the frontends.
type asking struct {
	*found
	stop  context.CancelFunc
	ended sync.WaitGroup

	mu       sync.Mutex
	answers  int
	failures []string
	slowest  time.Duration
}

// ask starts a client, which asks until it is ended.
func (f *found) ask(ctx context.Context) *asking {
	ctx, stop := context.WithCancel(ctx)
	a := &asking{found: f, stop: stop}
	f.Cleanup(a.end)
	a.ended.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for ctx.Err() == nil {
			a.once(ctx)
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	})
	return a
}

// once asks for the backends and for rows that lie on them.
func (a *asking) once(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	start := time.Now()
	rows, err := a.SQL(limited, "SHOW BACKENDS; SELECT COUNT(*) FROM demo.ships")
	took := time.Since(start)
	if ctx.Err() != nil {
		return // ended in the middle
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.slowest = max(a.slowest, took)
	switch {
	case err != nil:
		a.failures = append(a.failures, start.Format(time.TimeOnly)+" "+err.Error())
	case len(rows) != 3 || rows[2] != "3":
		a.failures = append(a.failures, start.Format(time.TimeOnly)+" "+strings.Join(rows, " | "))
	default:
		a.answers++
	}
}

// report holds that all queries since the last report were answered.
func (a *asking) report(when string) {
	a.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.Sayf("queries %s: %d answered, %d failed, the slowest took %s", when, a.answers, len(a.failures), a.slowest.Round(time.Millisecond))
	if a.answers < int(holds.Seconds())/4 {
		a.Errorf("%s: only %d queries were answered", when, a.answers)
	}
	for _, failure := range a.failures {
		a.Errorf("%s: a query failed: %s", when, failure)
	}
	a.answers, a.failures, a.slowest = 0, nil, 0
}

func (a *asking) end() {
	a.stop()
	a.ended.Wait()
}
