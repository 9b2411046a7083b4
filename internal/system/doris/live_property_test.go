package doris

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"pgregory.net/rapid"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/system/doris/client/setting"
)

const liveSmall = `
apiVersion: doris.selectdb.com/v1
kind: DorisCluster
metadata: {name: doris}
spec:
  configUpdatePolicy: Auto
  feSpec: {replicas: 1, image: "apache/doris:fe-1", configMapInfo: {configMapName: fe-conf}, persistentVolumes: [{name: meta, persistentVolumeClaimSpec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}
  beSpec: {replicas: 2, image: "apache/doris:be-1", configMapInfo: {configMapName: be-conf}, persistentVolumes: [{name: data, persistentVolumeClaimSpec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}
---
kind: ConfigMap
metadata: {name: be-conf}
data: {be.conf: "max_tablet_version_num = 3000\n"}
---
kind: ConfigMap
metadata: {name: fe-conf}
data: {fe.conf: "enable_fqdn_mode = true\n"}
`

var liveMembers = []string{"doris-fe-0", "doris-be-0", "doris-be-1"}

// TestAnyEditsSettle lets people edit configuration files while containers
// restart, Pods go, nodes do not answer and the operator is killed or sees an old
// world. In the end every process has what the last file says, or the file is
// refused; on the way no Pod went that did not need a start (nodesDouble.goes),
// and nothing was set before it was recorded (nodesDouble.Set).
func TestAnyEditsSettle(t *testing.T) {
	t.Parallel()
	end, failed := time.Now().Add(budget()), false
	rapid.Check(t, func(t *rapid.T) {
		if !failed && time.Now().After(end) {
			return
		}
		failed = true // until it has passed
		w := newWorld(t, liveSmall).withNodes()
		w.settle()
		h := &liveChaos{T: t, world: w}
		t.Repeat(map[string]func(*rapid.T){
			"operator":    func(t *rapid.T) { h.operator(t) },
			"operator2":   func(t *rapid.T) { h.operator(t) },
			"operator3":   func(t *rapid.T) { h.operator(t) },
			"controllers": func(*rapid.T) { w.controllers() },
			"kubelet":     func(*rapid.T) { w.kubelet() },
			"edit":        func(t *rapid.T) { h.edit(t) },
			"restart":     func(t *rapid.T) { w.nodes.restart(w, rapid.SampledFrom(liveMembers).Draw(t, "restarted")) },
			"outage":      func(t *rapid.T) { h.outage(t) },
			"time":        func(*rapid.T) { w.now = w.now.Add(40 * time.Second) },
			"deletion":    func(t *rapid.T) { h.deletion(t) },
			"policy":      func(t *rapid.T) { h.policy(t) },
		})
		h.ends()
		failed = failed && t.Failed()
	})
}

type liveChaos struct {
	*rapid.T
	world *world
}

// operator reconciles once, on a view that may be old, and may be killed between
// two steps.
func (h *liveChaos) operator(t *rapid.T) {
	w := h.world
	p, observed := w.plan(w.store.Before(rapid.IntRange(0, 4).Draw(t, "lag"), w.written))
	for i, s := range p.Steps {
		if _, waits := s.(plan.Wait); waits {
			break
		}
		if rapid.IntRange(0, 7).Draw(t, fmt.Sprintf("step %d", i)) == 0 {
			w.system = New(testEngine).Reaching(w.nodes, func() time.Time { return w.now }) // killed
			return
		}
		if err := w.step(s); apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return
		} else if err != nil {
			t.Fatalf("%s: %v", s.Why(), err)
		}
	}
	w.report(p, observed)
}

func (h *liveChaos) edit(t *rapid.T) {
	kind := rapid.SampledFrom([]string{"fe", "be", "be"}).Draw(t, "file")
	cm := object(h.world, kind+"-conf", &corev1.ConfigMap{})
	file := settingsIn(cm.Data[kind+".conf"])
	known := knownSettings[dorisv1.ComponentType(kind)]
	item := rapid.SampledFrom(append([]setting.Item{{Key: "no_such_setting", Type: "int"}}, known...)).Draw(t, "setting")
	switch value := rapid.SampledFrom([]string{"1", "2", "3", "", "bad"}).Draw(t, "value"); {
	case value == "":
		delete(file, item.Key)
	case item.Type == "boolean":
		file[item.Key] = fmt.Sprint(value == "1")
	default:
		file[item.Key] = value
	}
	h.write(kind, file)
}

func (h *liveChaos) write(kind string, file map[string]string) {
	var text strings.Builder
	for _, key := range sortedKeys(file) {
		fmt.Fprintf(&text, "%s = %s\n", key, file[key])
	}
	h.world.conf(kind, text.String())
}

func (h *liveChaos) outage(t *rapid.T) {
	name := rapid.SampledFrom(liveMembers).Draw(t, "node")
	faults := rapid.SampledFrom([]map[string]bool{h.world.nodes.down, h.world.nodes.dying, h.world.nodes.refusing, h.world.broken}).Draw(t, "fault")
	if faults[name] = !faults[name]; !faults[name] {
		delete(h.world.nodes.down, name)
	}
}

func (h *liveChaos) deletion(t *rapid.T) {
	name := rapid.SampledFrom(liveMembers).Draw(t, "deleted")
	key := keyOf(&corev1.Pod{ObjectMeta: objectMeta(h.world.dc, name, nil)})
	if h.world.store.Now().Get(key) != nil {
		h.world.must(h.world.store.Delete(key, "", false))
		// What an eviction does that was decided before this is seen is not the matter
		// of this test.
		h.world.written = h.world.store.Now().Version
	}
}

func (h *liveChaos) policy(t *rapid.T) {
	to := rapid.SampledFrom([]dorisv1.ConfigUpdatePolicy{dorisv1.ConfigUpdateAuto, dorisv1.ConfigUpdateAuto, dorisv1.ConfigUpdateManual}).Draw(t, "policy")
	h.world.edit(func(s *dorisv1.DorisClusterSpec) { s.ConfigUpdatePolicy = to })
}

// ends mends all that is broken and holds that everything comes to rest.
func (h *liveChaos) ends() {
	w := h.world
	clear(w.nodes.down)
	clear(w.nodes.dying)
	clear(w.nodes.refusing)
	clear(w.broken)
	w.edit(func(s *dorisv1.DorisClusterSpec) { s.ConfigUpdatePolicy = dorisv1.ConfigUpdateAuto })
	var p plan.Plan
	for range 4 {
		w.now = w.now.Add(2 * time.Minute)
		p = w.settle()
	}
	if len(p.Refused()) > 0 {
		h.refused(p)
		return
	}
	if len(p.Changes)+len(p.Steps) > 0 {
		h.Fatalf("it should have settled:\n%s", printPlan(p))
	}
	for _, name := range liveMembers {
		kind := name[len("doris-"):][:2]
		file := settingsIn(object(w, kind+"-conf", &corev1.ConfigMap{}).Data[kind+".conf"])
		for _, item := range knownSettings[dorisv1.ComponentType(kind)] {
			want, said := file[item.Key]
			if !said {
				want = item.Value
			}
			if got := w.nodes.procs[name].values[item.Key]; got != want {
				h.Errorf("%s of %s is %q, and the file says %q", item.Key, name, got, want)
			}
		}
	}
	if got := condition(w.dc, "ConfigurationInSync"); !strings.HasPrefix(got, "True") {
		h.Errorf("ConfigurationInSync is %q", got)
	}
	asked := w.nodes.asked
	w.now = w.now.Add(time.Hour)
	if w.settle(); w.nodes.asked != asked {
		h.Errorf("at rest, and nodes are asked")
	}
}

// refused holds that what is refused has to be.
func (h *liveChaos) refused(p plan.Plan) {
	for _, kind := range []string{"fe", "be"} {
		for key, value := range settingsIn(object(h.world, kind+"-conf", &corev1.ConfigMap{}).Data[kind+".conf"]) {
			if item, known := setting.Find(knownSettings[dorisv1.ComponentType(kind)], key); known && !setting.Fits(item.Type, value) {
				return
			}
		}
	}
	h.Errorf("refused, and no value is wrong:\n%s", printPlan(p))
}
