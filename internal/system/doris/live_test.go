package doris

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

const liveCluster = `
apiVersion: doris.selectdb.com/v1
kind: DorisCluster
metadata: {name: doris}
spec:
  configUpdatePolicy: Auto
  feSpec: {replicas: 3, image: "apache/doris:fe-1", configMapInfo: {configMapName: fe-conf}, persistentVolumes: [{name: meta, persistentVolumeClaimSpec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}
  beSpec: {replicas: 3, image: "apache/doris:be-1", configMapInfo: {configMapName: be-conf}, persistentVolumes: [{name: data, persistentVolumeClaimSpec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}
---
kind: ConfigMap
metadata: {name: be-conf}
data: {be.conf: "max_tablet_version_num = 3000\nbrpc_num_threads = 100\n", notes: old}
---
kind: ConfigMap
metadata: {name: fe-conf}
data: {fe.conf: "enable_fqdn_mode = true\nqe_slow_log_ms = 100\n"}
`

// liveWorld is a settled cluster whose nodes can be asked.
func liveWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, liveCluster).withNodes()
	if p := w.settle(); len(p.Changes) > 0 {
		t.Fatalf("a settled cluster has changes:\n%s", printPlan(p))
	}
	if w.nodes.asked > 0 {
		t.Fatalf("%d calls were made for a cluster with nothing to decide", w.nodes.asked)
	}
	return w
}

// conf replaces the configuration file of a component.
func (w *world) conf(kind, text string) {
	w.Helper()
	stranger(w, kind+"-conf", &corev1.ConfigMap{}, func(c *corev1.ConfigMap) { c.Data[kind+".conf"] = text })
}

// have holds that all nodes of a component have a value, and that everything
// else is done: no Pod but these went, and the condition says so.
func (w *world) have(t *testing.T, key, value string, gone ...string) {
	t.Helper()
	kind := "be"
	for _, i := range knownSettings[dorisv1.ComponentFE] {
		if i.Key == key {
			kind = "fe"
		}
	}
	for n := range 3 {
		name := fmt.Sprintf("doris-%s-%d", kind, n)
		if got := w.nodes.procs[name].values[key]; got != value {
			t.Errorf("%s of %s is %q, want %q", key, name, got, value)
		}
	}
	w.gone(t, gone, key)
	if got := condition(w.dc, meta.ConditionConfigurationInSync); !strings.HasPrefix(got, "True") {
		t.Errorf("ConfigurationInSync is %q", got)
	}
	asked, sets := w.nodes.asked, w.nodes.sets
	w.now = w.now.Add(time.Hour)
	if p := w.settle(); len(p.Changes) > 0 || len(p.Steps) > 0 {
		t.Errorf("at rest, and yet:\n%s", printPlan(p))
	}
	if w.nodes.asked != asked || w.nodes.sets != sets {
		t.Errorf("a converged cluster made %d calls", w.nodes.asked-asked+w.nodes.sets-sets)
	}
}

var frontends = []string{"doris-fe-2", "doris-fe-1", "doris-fe-0"}

// fileOfBE is the file of the backends with other values.
func fileOfBE(versions, threads string) string {
	return fmt.Sprintf("max_tablet_version_num = %s\nbrpc_num_threads = %s\n", versions, threads)
}

func TestLive(t *testing.T) {
	t.Parallel()
	t.Run("a mutable setting of backends is set without a restart", func(t *testing.T) {
		w := liveWorld(t)
		first := mounted(w)
		w.conf("be", fileOfBE("4711", "100"))
		w.settle()
		w.have(t, "max_tablet_version_num", "4711")
		if mounted(w) != first {
			t.Errorf("the template mounts %s", mounted(w))
		}
		text := object(w, "doris-be-0", &corev1.Pod{}).Annotations[meta.AnnotationLive]
		if !strings.Contains(text, `"done":true`) || strings.Contains(text, "4711") {
			t.Errorf("the record is %s", text)
		}
	})
	t.Run("mutable settings of frontends, one of the master alone", func(t *testing.T) {
		w := liveWorld(t)
		w.conf("fe", "enable_fqdn_mode = true\nqe_slow_log_ms = 4711\ndisable_balance = true\n")
		w.settle()
		w.have(t, "qe_slow_log_ms", "4711")
		w.have(t, "disable_balance", "true")
	})
	t.Run("a setting that is read at the start rolls its component, and the others come with it", func(t *testing.T) {
		w := liveWorld(t)
		w.conf("be", fileOfBE("4711", "200"))
		w.settle()
		w.have(t, "brpc_num_threads", "200", backends...)
		w.have(t, "max_tablet_version_num", "4711")
		if w.nodes.sets > 0 {
			t.Errorf("%d settings were set, and all came with the restart", w.nodes.sets)
		}
	})
	t.Run("an unknown setting and one that is removed need a restart", func(t *testing.T) {
		w := liveWorld(t)
		w.conf("be", fileOfBE("3000", "100")+"no_such_setting = 1\n")
		w.settle()
		w.have(t, "max_tablet_version_num", "3000", backends...)
		w.conf("fe", "enable_fqdn_mode = true\n")
		w.settle()
		w.have(t, "qe_slow_log_ms", "5000", frontends...)
	})
	t.Run("another spelling, a comment, an order ask for nothing", func(t *testing.T) {
		w := liveWorld(t)
		w.conf("be", "# tuned\nbrpc_num_threads = 0100\nmax_tablet_version_num = 3000\n")
		w.settle()
		w.have(t, "brpc_num_threads", "100")
		if w.nodes.sets > 0 {
			t.Errorf("%d settings were set", w.nodes.sets)
		}
	})
	t.Run("a file beside the configuration file needs a restart", func(t *testing.T) {
		w := liveWorld(t)
		w.nodes.otherFiles = true
		stranger(w, "be-conf", &corev1.ConfigMap{}, func(c *corev1.ConfigMap) { c.Data["notes"] = "new" })
		w.settle()
		w.have(t, "max_tablet_version_num", "3000", backends...)
		if w.nodes.asked > 0 {
			t.Errorf("%d nodes were asked about it", w.nodes.asked)
		}
	})
}

func TestLiveIsSetAgain(t *testing.T) {
	t.Parallel()
	t.Run("after a container start", func(t *testing.T) {
		w := liveWorld(t)
		w.conf("be", fileOfBE("4711", "100"))
		w.settle()
		w.nodes.restart(w, "doris-be-1")
		w.kubelet()
		if got := w.nodes.procs["doris-be-1"].values["max_tablet_version_num"]; got != "3000" {
			t.Fatalf("it has started with %s", got)
		}
		w.nodes.down["doris-be-1"] = true
		w.reconcile()
		if got := condition(w.dc, meta.ConditionConfigurationInSync); !strings.HasPrefix(got, "False SettingsPending: doris-be-1") {
			t.Errorf("ConfigurationInSync is %q", got)
		}
		delete(w.nodes.down, "doris-be-1")
		w.now = w.now.Add(2 * time.Minute)
		w.settle()
		w.have(t, "max_tablet_version_num", "4711")
	})
	t.Run("on a Pod that replaces another", func(t *testing.T) {
		w := liveWorld(t)
		w.conf("be", fileOfBE("4711", "100"))
		w.settle()
		pod := object(w, "doris-be-2", &corev1.Pod{})
		w.must(w.store.Delete(keyOf(pod), pod.UID, false))
		w.settle()
		w.have(t, "max_tablet_version_num", "4711")
	})
	t.Run("also when the policy is Manual by then", func(t *testing.T) {
		w := liveWorld(t)
		w.conf("be", fileOfBE("4711", "100"))
		w.settle()
		w.edit(func(s *dorisv1.DorisClusterSpec) { s.ConfigUpdatePolicy = dorisv1.ConfigUpdateManual })
		w.nodes.restart(w, "doris-be-0")
		w.settle()
		w.have(t, "max_tablet_version_num", "4711")
		w.conf("be", fileOfBE("1", "100"))
		p := w.settle()
		if len(p.HeldSets()) != 1 || w.nodes.procs["doris-be-0"].values["max_tablet_version_num"] != "4711" {
			t.Errorf("the plan is\n%s", printPlan(p))
		}
		w.nodes.restart(w, "doris-be-0")
		w.settle()
		if got := w.nodes.procs["doris-be-0"].values["max_tablet_version_num"]; got != "4711" {
			t.Errorf("while a change is held it has %s", got)
		}
		w.approve(onlyDigest(t, w.settle(), "ConfigMap/be-conf"))
		w.settle()
		w.gone(t, backends, "approved")
	})
	t.Run("on the Pods of a set that is deleted and made again", func(t *testing.T) {
		w := liveWorld(t)
		w.conf("be", fileOfBE("4711", "100"))
		w.settle()
		w.report(w.plan(w.store.Now())) // the status remembers what the set mounts
		set := w.set("doris-be")
		w.must(w.store.Delete(keyOf(set), set.UID, false))
		w.settle()
		w.have(t, "max_tablet_version_num", "4711")
		w.nodes.restart(w, "doris-be-1")
		w.settle()
		w.have(t, "max_tablet_version_num", "4711")
	})
	t.Run("a later template mounts the newest content", func(t *testing.T) {
		w := liveWorld(t)
		w.conf("be", fileOfBE("4711", "100"))
		w.settle()
		w.edit(image("2"))
		w.settle()
		w.have(t, "max_tablet_version_num", "4711", backends...)
		if got := object(w, mounted(w), &corev1.ConfigMap{}).Data["be.conf"]; !strings.Contains(got, "4711") {
			t.Errorf("the template mounts %q", got)
		}
		if recorded, _ := readAccepted(w.set("doris-be")); len(recorded.Live) > 0 {
			t.Errorf("the record still says %v", recorded.Live)
		}
	})
}

func TestLiveEdits(t *testing.T) {
	t.Parallel()
	t.Run("several in a second, the last wins", func(t *testing.T) {
		w := liveWorld(t)
		for n := range 5 {
			w.conf("be", fileOfBE(fmt.Sprint(4000+n), "100"))
			w.reconcile()
		}
		w.settle()
		w.have(t, "max_tablet_version_num", "4004")
	})
	t.Run("back to what is mounted", func(t *testing.T) {
		w := liveWorld(t)
		w.conf("be", fileOfBE("4711", "100"))
		w.settle()
		w.conf("be", fileOfBE("3000", "100"))
		w.settle()
		w.have(t, "max_tablet_version_num", "3000")
	})
	t.Run("a key that was added live and is removed again needs a start", func(t *testing.T) {
		w := liveWorld(t)
		w.conf("be", fileOfBE("3000", "100")+"sys_log_level = 4711\n")
		w.settle()
		w.have(t, "sys_log_level", "4711")
		w.conf("be", fileOfBE("3000", "100"))
		w.settle()
		w.have(t, "sys_log_level", "INFO", backends...)
	})
	t.Run("during a roll", func(t *testing.T) {
		w := liveWorld(t)
		w.conf("be", fileOfBE("3000", "200"))
		w.reconcile()
		w.controllers()
		w.reconcile() // the first goes
		w.conf("be", fileOfBE("4711", "200"))
		w.settle()
		w.have(t, "max_tablet_version_num", "4711", backends...)
		w.have(t, "brpc_num_threads", "200")
	})
	t.Run("that needs a start and is taken back during the roll", func(t *testing.T) {
		w := liveWorld(t)
		w.conf("be", fileOfBE("3000", "200"))
		w.reconcile()
		w.controllers()
		w.reconcile() // the first goes
		w.conf("be", fileOfBE("3000", "100"))
		w.settle()
		if got := w.nodes.procs["doris-be-2"].values["brpc_num_threads"]; got != "100" || len(w.evicts) > 2 {
			t.Errorf("it has %s, gone are %v", got, w.evicts)
		}
	})
	t.Run("a node is down: set when it is back, and not reported before", func(t *testing.T) {
		w := liveWorld(t)
		w.nodes.down["doris-be-1"] = true
		w.conf("be", fileOfBE("4711", "100"))
		p := w.settle()
		if got := condition(w.dc, meta.ConditionConfigurationInSync); !strings.HasPrefix(got, "False SettingsPending: doris-be-1: nobody answers") {
			t.Errorf("ConfigurationInSync is %q", got)
		}
		if got := w.nodes.procs["doris-be-0"].values["max_tablet_version_num"]; got != "4711" {
			t.Errorf("another node has %s", got)
		}
		if waits := p.Waits(); len(waits) != 1 || waits[0].Recheck < time.Minute {
			t.Errorf("the plan is\n%s", printPlan(p))
		}
		asked := w.nodes.asked
		w.settle()
		if w.nodes.asked != asked {
			t.Errorf("it was asked again within the minute")
		}
		delete(w.nodes.down, "doris-be-1")
		w.now = w.now.Add(p.Waits()[0].Recheck)
		w.settle()
		w.have(t, "max_tablet_version_num", "4711")
	})
	t.Run("no node answers: nothing is decided", func(t *testing.T) {
		w := liveWorld(t)
		for _, name := range backends {
			w.nodes.down[name] = true
		}
		w.conf("be", fileOfBE("4711", "100"))
		p := w.settle()
		w.gone(t, nil, "nobody answers")
		want := []string{`for be: data["be.conf"].max_tablet_version_num config reload, else restart-pod wait`}
		if got := changesOf(p, "ConfigMap/be-conf"); !slices.Equal(got, want) {
			t.Errorf("changes %v", got)
		}
		if got := condition(w.dc, meta.ConditionConfigurationInSync); !strings.HasPrefix(got, "False SettingsPending: be: the content of ConfigMap be-conf is not accepted yet") {
			t.Errorf("ConfigurationInSync is %q", got)
		}
		clear(w.nodes.down)
		w.now = w.now.Add(p.Waits()[0].Recheck)
		w.settle()
		w.have(t, "max_tablet_version_num", "4711")
	})
	t.Run("all processes of a component end again and again: a mended file reaches them", func(t *testing.T) {
		w := liveWorld(t)
		w.nodes.crashes = true
		for _, name := range backends {
			w.broken[name] = true
		}
		w.kubelet()
		w.conf("be", fileOfBE("4711", "100"))
		w.reconcile()
		w.controllers()
		w.reconcile()
		if len(w.evicts) != 1 {
			t.Errorf("gone are %v", w.evicts)
		}
		clear(w.broken)
		w.evicts = nil
		w.settle()
		w.have(t, "max_tablet_version_num", "4711", "doris-be-1", "doris-be-0")
	})
	t.Run("no image of a component can be pulled: a file does not help, and nothing goes", func(t *testing.T) {
		w := liveWorld(t)
		for _, name := range backends {
			w.broken[name] = true
		}
		w.kubelet()
		w.conf("be", fileOfBE("4711", "100"))
		w.settle()
		w.gone(t, nil, "not to be pulled")
		clear(w.broken)
		w.settle()
		w.have(t, "max_tablet_version_num", "4711")
	})
	t.Run("a node takes it and dies before it answers", func(t *testing.T) {
		w := liveWorld(t)
		w.nodes.dying["doris-be-0"] = true
		w.conf("be", fileOfBE("4711", "100"))
		w.settle()
		if got := condition(w.dc, meta.ConditionConfigurationInSync); !strings.HasPrefix(got, "False SettingsPending: doris-be-0") {
			t.Errorf("ConfigurationInSync is %q", got)
		}
		clear(w.nodes.dying)
		clear(w.nodes.down)
		w.conf("be", fileOfBE("3000", "100")) // back: what nobody knows to be set is put right
		w.now = w.now.Add(2 * time.Minute)
		w.settle()
		w.have(t, "max_tablet_version_num", "3000")
	})
	t.Run("a node refuses a value: told, and nothing restarts", func(t *testing.T) {
		w := liveWorld(t)
		w.nodes.refusing["doris-be-0"] = true
		w.conf("be", fileOfBE("4711", "100"))
		p := w.settle()
		w.gone(t, nil, "refused by the node")
		if got := condition(w.dc, meta.ConditionConfigurationInSync); !strings.HasPrefix(got, "False SettingsPending: doris-be-0: it does not take max_tablet_version_num: not this one") {
			t.Errorf("ConfigurationInSync is %q", got)
		}
		sets := w.nodes.sets
		w.settle()
		if w.nodes.sets != sets {
			t.Errorf("it was tried again within the minute")
		}
		clear(w.nodes.refusing)
		w.now = w.now.Add(p.Waits()[0].Recheck)
		w.settle()
		w.have(t, "max_tablet_version_num", "4711")
	})
	t.Run("a value that the node would not start with is refused", func(t *testing.T) {
		w := liveWorld(t)
		w.conf("be", fileOfBE("many4711", "200"))
		p := w.settle()
		w.gone(t, nil, "invalid")
		got := condition(w.dc, meta.ConditionStalled)
		if !strings.HasPrefix(got, "True InvalidConfiguration") || !strings.Contains(got, `be.conf in ConfigMap "be-conf": max_tablet_version_num: `) || strings.Contains(got, "many4711") {
			t.Errorf("Stalled is %q", got)
		}
		if w.nodes.sets > 0 || len(p.Steps) > 0 {
			t.Errorf("%d settings were set", w.nodes.sets)
		}
		w.conf("be", fileOfBE("4711", "100"))
		w.settle()
		w.have(t, "max_tablet_version_num", "4711")
	})
}

// TestPlanWithoutNodes plans as the plugin does, which asks no node.
func TestPlanWithoutNodes(t *testing.T) {
	t.Parallel()
	w := liveWorld(t)
	w.system = New(testEngine)
	w.conf("be", fileOfBE("4711", "200"))
	p, _ := w.plan(w.store.Now())
	var effects []string
	for _, c := range p.Changes {
		effects = append(effects, fmt.Sprintf("%s %s %s", c.Object, c.Effect, c.Verdict))
	}
	want := "ConfigMap/be-conf reload, else restart-pod wait"
	if !slices.Equal(effects, []string{want, want}) {
		t.Errorf("changes:\n%s", printPlan(p))
	}
	if slices.ContainsFunc(p.Steps, func(s plan.Step) bool { _, waits := s.(plan.Wait); return !waits }) {
		t.Errorf("steps %v", steps(p))
	}
}

// TestLiveAfterTakeover edits files of a cluster that another operator made and
// that is kept as it was found: its Pods mount the ConfigMaps themselves.
func TestLiveAfterTakeover(t *testing.T) {
	t.Parallel()
	w := legacy(t, liveCluster, nil).withNodes()
	w.kubelet() // the processes of the double
	w.settle()
	before := templates(w)
	w.conf("be", fileOfBE("4711", "100"))
	w.settle()
	for _, name := range backends {
		if got := w.nodes.procs[name].values["max_tablet_version_num"]; got != "4711" {
			t.Errorf("%s has %s", name, got)
		}
	}
	if after := templates(w); after["doris-be"] != before["doris-be"] {
		t.Errorf("the template changed")
	}
	w.gone(t, nil, "set live")
	asked := w.nodes.asked
	w.now = w.now.Add(time.Hour)
	if p := w.settle(); w.nodes.asked != asked || !p.Settled() {
		t.Errorf("asked %d times more, and the plan is\n%s", w.nodes.asked-asked, printPlan(p))
	}
	w.nodes.restart(w, "doris-be-1")
	w.settle()
	if got := condition(w.dc, meta.ConditionConfigurationInSync); !strings.HasPrefix(got, "True") {
		t.Errorf("after a container start: %s", got)
	}
	w.conf("be", fileOfBE("4711", "200"))
	w.settle()
	w.gone(t, backends, "needs a start")
	for _, name := range backends {
		if got := w.nodes.procs[name].values["brpc_num_threads"]; got != "200" {
			t.Errorf("%s has %s", name, got)
		}
	}
	if p := w.settle(); !p.Settled() {
		t.Errorf("the plan is\n%s", printPlan(p))
	}
}

func TestLiveHeld(t *testing.T) {
	t.Parallel()
	t.Run("nodes that speak TLS are not asked: held as under Manual", func(t *testing.T) {
		tls := "enable_tls = true\ntls_ca_certificate_path = /tls/ca\ntls_certificate_path = /tls/crt\ntls_private_key_path = /tls/key\n"
		w := newWorld(t, strings.Replace(liveCluster, "be.conf: \"", "be.conf: \""+strings.ReplaceAll(tls, "\n", `\n`), 1)).withNodes()
		w.settle()
		w.conf("be", tls+fileOfBE("4711", "100"))
		p := w.settle()
		w.gone(t, nil, "held")
		if len(p.HeldSets()) != 1 || w.nodes.asked > 0 {
			t.Errorf("asked %d times, the plan is\n%s", w.nodes.asked, printPlan(p))
		}
		if got := condition(w.dc, meta.ConditionFullySupported); !strings.HasPrefix(got, "False") || !strings.Contains(got, "spec.configUpdatePolicy") {
			t.Errorf("FullySupported is %q", got)
		}
		w.nodes.otherFiles = true // they go because a person says so
		w.approve(onlyDigest(t, p, "ConfigMap/be-conf"))
		w.settle()
		w.gone(t, backends, "approved")
	})
	t.Run("data on emptyDir volumes: what can be set is, what needs a restart is held", func(t *testing.T) {
		claims := `persistentVolumes: [{name: data, persistentVolumeClaimSpec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]`
		w := newWorld(t, strings.Replace(liveCluster, ", "+claims, "", 1)).withNodes()
		w.settle()
		w.conf("be", fileOfBE("4711", "100"))
		w.settle()
		w.have(t, "max_tablet_version_num", "4711")
		w.conf("be", fileOfBE("4712", "200"))
		p := w.settle()
		w.gone(t, nil, "held")
		if len(p.HeldSets()) != 1 || !p.Settled() {
			t.Errorf("the plan is\n%s", printPlan(p))
		}
		w.nodes.restart(w, "doris-be-1")
		w.settle()
		if got := w.nodes.procs["doris-be-1"].values["max_tablet_version_num"]; got != "4711" {
			t.Errorf("after a start, while the change is held, it has %s", got)
		}
		w.conf("be", fileOfBE("4712", "100"))
		w.settle()
		w.have(t, "max_tablet_version_num", "4712")
	})
}
