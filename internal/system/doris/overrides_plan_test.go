package doris

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/system/doris/client/setting"
)

// pollDouble is a nodesDouble that is asked time and again.
type pollDouble struct {
	*nodesDouble
	polls int
}

func (d *pollDouble) Poll(ctx context.Context, at nodeAddress) ([]setting.Item, error) {
	d.asking.Lock()
	d.polls++
	d.asking.Unlock()
	return d.Settings(ctx, at)
}

// polledWorld is a cluster whose nodes are asked for changed settings.
func polledWorld(t *testing.T) (*world, *pollDouble) {
	t.Helper()
	w := newWorld(t, smallCluster).withNodes()
	d := &pollDouble{nodesDouble: w.nodes}
	w.system = New(testEngine).Reaching(d, func() time.Time { return w.now })
	w.settle()
	w.later(2 * askEvery) // the record begins when the cluster is ready
	return w, d
}

// later lets time go by, and settles.
func (w *world) later(d time.Duration) {
	w.now = w.now.Add(d)
	w.settle()
}

// TestChangedSettingsAreSeen holds that what is changed in a running node is named and
// counted, that a restart which forgets it is told, and that no value is anywhere.
func TestChangedSettingsAreSeen(t *testing.T) {
	t.Parallel()
	const secret = "917331"
	w, d := polledWorld(t)
	be := func() []string { return Observed(observedWorld(w), "doris", dorisv1.ComponentBE).Keys() }
	if got := be(); len(got) > 0 {
		t.Fatalf("%v are changed at the beginning", got)
	}
	written, polls := w.store.Now().Version, d.polls
	w.later(2 * askEvery)
	if w.store.Now().Version != written || d.polls != polls+2 {
		t.Errorf("at rest %d nodes were asked, and the version went from %d to %d", d.polls-polls, written, w.store.Now().Version)
	}
	w.nodes.procs["doris-be-0"].values["max_tablet_version_num"] = secret
	w.later(2 * askEvery)
	if got := be(); len(got) != 1 || got[0] != "max_tablet_version_num" {
		t.Errorf("changed are %v", got)
	}
	if s := w.dc.Status.RuntimeConfig; s == nil || s.ChangedSettings != 1 || s.ChangedNodes != 1 {
		t.Errorf("status %+v", s)
	}
	for _, value := range object(w, ObservedName("doris"), &corev1.ConfigMap{}).Data {
		if strings.Contains(value, secret) {
			t.Errorf("a value is recorded: %s", value)
		}
	}
	explained := func(key string) string {
		var out []string
		for _, e := range ExplainSettings(w.dc, seen(w), key) {
			out = append(out, fmt.Sprintf("%s %s: %s %s%s, mutable %t, contradicts %t", e.Component, e.Key, e.Layer, e.Source, e.Pod, *e.Mutable, e.Contradicts))
		}
		return strings.Join(out, "\n")
	}
	if diff := cmp.Diff(strings.TrimSpace(`
fe custom_config_dir: operator keeps settings on volume meta, mutable false, contradicts false
be custom_config_dir: operator keeps settings on volume data, mutable false, contradicts false
be max_tablet_version_num: run-time doris-be-0, mutable true, contradicts false`), explained("")); diff != "" {
		t.Errorf("explained as (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(strings.TrimSpace(`
be max_tablet_version_num: image apache/doris:be-1, mutable true, contradicts false
be max_tablet_version_num: run-time doris-be-0, mutable true, contradicts false`), explained("experimental_max_tablet_version_num")); diff != "" {
		t.Errorf("explained as (-want +got):\n%s", diff)
	}
	w.system = New(testEngine).Reaching(d, func() time.Time { return w.now }) // the operator is restarted
	w.later(2 * askEvery)
	if got := be(); len(got) != 1 {
		t.Errorf("after a restart of the operator changed are %v", got)
	}
	w.nodes.restart(w, "doris-be-0")
	w.kubelet()
	w.later(2 * askEvery)
	if got := condition(w.dc, ConditionRuntimeConfigLost); !strings.HasPrefix(got, "True "+reasonRuntimeConfigLost) || !strings.Contains(got, "doris-be-0: max_tablet_version_num") {
		t.Errorf("%s is %q", ConditionRuntimeConfigLost, got)
	}
	w.nodes.procs["doris-be-0"].values["max_tablet_version_num"] = secret
	w.later(2 * askEvery)
	if got := condition(w.dc, ConditionRuntimeConfigLost); got != "" {
		t.Errorf("it was set again, and %s is %q", ConditionRuntimeConfigLost, got)
	}
}

func observedWorld(w *world) World {
	w.Helper()
	return World{OwnMaps: map[string]*corev1.ConfigMap{ObservedName("doris"): object(w, ObservedName("doris"), &corev1.ConfigMap{})}}
}

// seen is what the plugin sees of a cluster: it asks no nodes.
func seen(w *world) World {
	w.Helper()
	observed, err := New(testEngine).Observe(context.Background(), view{w.store.Now()}, w.dc)
	w.must(err)
	return observed
}

// TestContradictionsAreCounted holds that a setting which was changed in a node, and which a
// ConfigMap names as well, is counted and explained as one that wins, and left alone.
func TestContradictionsAreCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, backendConf(smallCluster, "max_tablet_version_num = 1\n"))
	w.settle()
	_, err := w.store.Create(&corev1.ConfigMap{
		ObjectMeta: objectMeta(w.dc, ObservedName("doris"), map[string]string{dorisv1.LabelOwner: "doris"}),
		Data: map[string]string{"be": `{"image":"apache/doris:be-1","nodes":{"doris-be-0":{"start":"a",` +
			`"changed":{"max_tablet_version_num":"2026-05-06T12:00:00Z","streaming_load_max_mb":"2026-05-06T12:00:00Z"}}}}`},
	}, FieldManager)
	w.must(err)
	if p := w.settle(); len(p.Changes) > 0 {
		t.Errorf("it is fought:\n%s", printPlan(p))
	}
	want := &dorisv1.RuntimeConfigStatus{
		Policy: "automatic", Kept: []dorisv1.ComponentType{"be", "fe"}, ChangedSettings: 2, ChangedNodes: 1, ContradictedSettings: 1,
	}
	if diff := cmp.Diff(want, w.dc.Status.RuntimeConfig); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	for _, e := range ExplainSettings(w.dc, seen(w), "") {
		if wins := e.Key == "max_tablet_version_num" && e.Layer == LayerRunTime; e.Contradicts != wins {
			t.Errorf("explained as %+v", e)
		}
	}
}
