package doris

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/system/doris/runtimeconfig"
)

// approvalNow is what the plugin would write for a cluster whose settings are copied.
func (w *world) approvalNow() runtimeconfig.Approval {
	w.Helper()
	a := runtimeconfig.Approval{ID: "0123456789abcdef", Cluster: string(w.dc.UID), Generation: w.dc.Generation, Components: map[runtimeconfig.Kind]runtimeconfig.Copied{}}
	for _, c := range []struct{ kind, volume, path string }{
		{"fe", "meta", frontendHome + "/doris-meta"}, {"be", "data", backendHome + "/storage"},
	} {
		set := w.set("doris-" + c.kind)
		a.Components[runtimeconfig.Kind(c.kind)] = runtimeconfig.Copied{
			UID: string(set.UID), Generation: set.Generation, Replicas: *set.Spec.Replicas, Volume: c.volume, MountPath: c.path,
		}
	}
	return a
}

// approves writes an approval as the plugin does: with the field, in one write.
func (w *world) approves(a runtimeconfig.Approval) {
	w.annotated(dorisv1.AnnotationRuntimeConfigMigration, a.String())
	w.wants(new(true))
}

// oneAndTwo has a frontend and two backends, with claims.
var oneAndTwo = strings.Replace(strings.Replace(threeByThree, "feSpec: {replicas: 3", "feSpec: {replicas: 1", 1), "beSpec: {replicas: 3", "beSpec: {replicas: 2", 1)

// ran are clusters that ran before settings were kept.
var ran = map[string]func(*testing.T) *world{
	"taken over": func(t *testing.T) *world {
		t.Helper()
		w := legacy(t, oneAndTwo, nil)
		w.settle()
		return w
	},
	"made before settings were kept": func(t *testing.T) *world {
		t.Helper()
		w := runs(t, oneAndTwo)
		w.settle()
		return w
	},
}

// TestMigration holds that an approval which is right brings the settings of a cluster that
// ran before onto the volumes: each Pod goes once, no other change comes with it, and each
// member that was there must find its copy.
func TestMigration(t *testing.T) {
	t.Parallel()
	for name, from := range ran {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := from(t)
			revision := w.set("doris-be").Annotations[meta.AnnotationRevision]
			before := w.templateOf("doris-be")
			w.approves(w.approvalNow())
			p, _ := w.plan(w.store.Now())
			if refused := p.Refused(); len(refused) > 0 {
				t.Fatalf("refused: %v", refused)
			}
			if !strings.Contains(printPlan(p), runtimeconfig.Directory) {
				t.Errorf("the plan does not name the change:\n%s", printPlan(p))
			}
			if p := w.settle(); len(p.Refused()) > 0 {
				t.Fatalf("refused: %v", p.Refused())
			}
			slices.Sort(w.evicts)
			if diff := cmp.Diff([]string{"doris-be-0", "doris-be-1", "doris-fe-0"}, w.evicts); diff != "" {
				t.Errorf("Pods that went (-want +got):\n%s", diff)
			}
			w.keepsCopies()
			if got := w.set("doris-be").Annotations[meta.AnnotationRevision]; got != revision {
				t.Errorf("the rendering is %s, and was %s", got, revision)
			}
			w.onlyKeeps(before, w.templateOf("doris-be"))
			if w.policy() != "enabled" || w.dc.Annotations[meta.AnnotationMigrationAccepted] != "0123456789abcdef" {
				t.Errorf("annotations of the resource: %v", w.dc.Annotations)
			}
			if diff := cmp.Diff([]dorisv1.ComponentType{"be", "fe"}, w.dc.Status.RuntimeConfig.Kept); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

// TestClaimsOfMigratedMembersStay holds that nothing is done while the claims of members
// that look for their copies would go with them, and that it goes on when that is taken back.
func TestClaimsOfMigratedMembersStay(t *testing.T) {
	t.Parallel()
	w := ran["made before settings were kept"](t)
	w.approves(w.approvalNow())
	w.settle()
	w.dc.Spec.BeSpec.ClaimRetention = &dorisv1.ClaimRetention{WhenScaledIn: dorisv1.RetentionDelete}
	p := w.settle()
	if got := p.Refused(); len(got) != 1 || got[0].Field != "spec.beSpec.claimRetention.whenScaledIn" || got[0].Reason != runtimeconfig.ReasonStorageChanged {
		t.Fatalf("refused: %v", got)
	}
	if got := w.set("doris-be").Spec.PersistentVolumeClaimRetentionPolicy; got != nil && got.WhenScaled == appsv1.DeletePersistentVolumeClaimRetentionPolicyType {
		t.Error("the claims go")
	}
	w.dc.Spec.BeSpec.ClaimRetention = &dorisv1.ClaimRetention{WhenRemoved: dorisv1.RetentionDelete}
	if p := w.settle(); len(p.Refused()) > 0 {
		t.Errorf("refused: %v", p.Refused())
	}
}

// keepsCopies holds that all settings are kept, and that the members that were there must
// find their copies.
func (w *world) keepsCopies() {
	w.Helper()
	for set, of := range map[string]struct{ volume, migrated string }{"doris-fe": {"meta", ":1"}, "doris-be": {"data", ":2"}} {
		if got := w.keptOn(set); got != of.volume {
			w.Errorf("%s keeps them on %q, want %q", set, got, of.volume)
		}
		w.mustFind(set, "0123456789abcdef"+of.migrated)
	}
}

// mustFind holds that members of a set must find the copy of a migration.
func (w *world) mustFind(set, want string) {
	w.Helper()
	for _, c := range w.templateOf(set).Spec.InitContainers {
		for _, e := range c.Env {
			if c.Name == runtimeconfig.InitName && e.Name == "FAIRLEAD_MIGRATED" {
				if e.Value != want {
					w.Errorf("%s looks for the copies %q, want %q", set, e.Value, want)
				}
				return
			}
		}
	}
	w.Errorf("%s looks for no copies", set)
}

// onlyKeeps holds that a template differs from another one by what keeps settings alone.
func (w *world) onlyKeeps(before, after corev1.PodTemplateSpec) {
	w.Helper()
	delete(before.Annotations, meta.AnnotationTemplate)
	delete(after.Annotations, meta.AnnotationTemplate)
	own := func(v corev1.VolumeMount) bool {
		return v.Name == runtimeconfig.BaseVolume || v.MountPath == runtimeconfig.Directory
	}
	pod := &after.Spec
	pod.InitContainers = slices.DeleteFunc(slices.Clone(pod.InitContainers), func(c corev1.Container) bool { return c.Name == runtimeconfig.InitName })
	pod.Volumes = slices.DeleteFunc(slices.Clone(pod.Volumes), func(v corev1.Volume) bool { return v.Name == runtimeconfig.BaseVolume })
	pod.Containers[0].VolumeMounts = slices.DeleteFunc(slices.Clone(pod.Containers[0].VolumeMounts), own)
	if len(pod.InitContainers) == 0 {
		pod.InitContainers = nil
	}
	if len(after.Annotations) == 0 {
		after.Annotations = before.Annotations
	}
	if diff := cmp.Diff(before.Spec, after.Spec); diff != "" {
		w.Errorf("the template changes in other places too (-before +after):\n%s", diff)
	}
}

// TestMigrationRefusals holds that an approval which does not hold moves nothing, says why
// and what to do, and that a right one ends that.
func TestMigrationRefusals(t *testing.T) {
	t.Parallel()
	edit := func(kind runtimeconfig.Kind, do func(*runtimeconfig.Copied)) func(*world) {
		return func(w *world) {
			a := w.approvalNow()
			c := a.Components[kind]
			do(&c)
			a.Components[kind] = c
			w.approves(a)
		}
	}
	tests := map[string]struct {
		do             func(*world)
		reason, saying string
	}{
		"no approval": {func(w *world) { w.wants(new(true)) }, runtimeconfig.ReasonMigrationNeeded, "kubectl fairlead runtime-config"},
		"no JSON": {func(w *world) {
			w.annotated(dorisv1.AnnotationRuntimeConfigMigration, "yes")
			w.wants(new(true))
		}, runtimeconfig.ReasonMigrationInvalid, "no JSON"},
		"of a version that is not known": {func(w *world) {
			w.annotated(dorisv1.AnnotationRuntimeConfigMigration, `{"v":2,"id":"0123456789abcdef"}`)
			w.wants(new(true))
		}, runtimeconfig.ReasonMigrationInvalid, "version 2"},
		"with an id that is none": {func(w *world) {
			a := w.approvalNow()
			a.ID = "$(reboot)"
			w.approves(a)
		}, runtimeconfig.ReasonMigrationInvalid, "no id"},
		"of another cluster": {func(w *world) {
			a := w.approvalNow()
			a.Cluster = "another"
			w.approves(a)
		}, runtimeconfig.ReasonMigrationInvalid, "another cluster of this name"},
		"the spec was edited before": {func(w *world) {
			a := w.approvalNow()
			w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-3.0.6" })
			w.approves(a)
		}, runtimeconfig.ReasonMigrationOutdated, "the spec was edited"},
		"of another set":             {edit("be", func(c *runtimeconfig.Copied) { c.UID = "another" }), runtimeconfig.ReasonMigrationOutdated, "another StatefulSet"},
		"with other replicas":        {edit("fe", func(c *runtimeconfig.Copied) { c.Replicas = 3 }), runtimeconfig.ReasonMigrationOutdated, "has 1 replicas, and had 3"},
		"the set was edited":         {edit("be", func(c *runtimeconfig.Copied) { c.Generation-- }), runtimeconfig.ReasonMigrationOutdated, "was edited"},
		"copied to another volume":   {edit("be", func(c *runtimeconfig.Copied) { c.Volume = "logs" }), runtimeconfig.ReasonMigrationOutdated, "volume data would be used"},
		"copied to no volume":        {edit("be", func(c *runtimeconfig.Copied) { c.Volume = "" }), runtimeconfig.ReasonMigrationInvalid, "on which volume"},
		"copied to another sub path": {edit("be", func(c *runtimeconfig.Copied) { c.SubPath = "x" }), runtimeconfig.ReasonMigrationOutdated, "would be used"},
		"a component is missing": {func(w *world) {
			a := w.approvalNow()
			delete(a.Components, "fe")
			w.approves(a)
		}, runtimeconfig.ReasonMigrationOutdated, "StatefulSet doris-fe were not copied"},
		"a set is gone": {func(w *world) {
			a := w.approvalNow()
			w.remove("doris-be")
			w.approves(a)
		}, runtimeconfig.ReasonMigrationOutdated, "or gone"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := ran["taken over"](t)
			test.do(w)
			before := w.store.Now().Version
			p := w.settle()
			refused := p.Refused()
			if len(refused) == 0 || refused[0].Reason != test.reason || !strings.Contains(refused[0].String(), test.saying) {
				t.Fatalf("not refused for %s, saying %q:\n%s", test.reason, test.saying, printPlan(p))
			}
			if w.policy() != "legacy" || w.dc.Annotations[meta.AnnotationMigrationAccepted] != "" {
				t.Errorf("something was recorded: %v", w.dc.Annotations)
			}
			if name != "a set is gone" && w.store.Now().Version != before || len(w.evicts) > 0 {
				t.Errorf("something was written, or Pods went: %v", w.evicts)
			}
			if stalled := condition(w.dc, meta.ConditionStalled); !strings.HasPrefix(stalled, "True "+test.reason) {
				t.Errorf("Stalled is %q", stalled)
			}
			w.wants(nil)
			if p := w.settle(); len(p.Refused()) > 0 {
				t.Fatalf("the field was taken out, and still:\n%s", printPlan(p))
			}
			w.approves(w.approvalNow())
			if p := w.settle(); len(p.Refused()) > 0 || w.keptOn("doris-be") != "data" {
				t.Errorf("approved anew, and still:\n%s", printPlan(p))
			}
		})
	}
}

// TestMigrationGoesOn holds that a migration which has begun comes to its end whatever
// happens meanwhile: the copies on the volumes are what they were.
func TestMigrationGoesOn(t *testing.T) {
	t.Parallel()
	events := map[string]func(*world){
		"the operator is restarted":     func(w *world) { w.system = New(testEngine) },
		"the spec is edited":            func(w *world) { w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-3.0.5" }) },
		"a frontend is added":           func(w *world) { w.edit(func(s *dorisv1.DorisClusterSpec) { s.FeSpec.Replicas = new(int32(3)) }) },
		"the set of the frontends goes": func(w *world) { w.remove("doris-fe") },
		"the set of the backends goes":  func(w *world) { w.remove("doris-be") },
		"somebody edits a set": func(w *world) {
			stranger(w, "doris-fe", &appsv1.StatefulSet{}, func(s *appsv1.StatefulSet) { s.Spec.MinReadySeconds = 3 })
		},
		"the field is taken out and back": func(w *world) { w.wants(nil); w.settle(); w.wants(new(true)) },
	}
	for name, do := range events {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := ran["taken over"](t)
			w.approves(w.approvalNow())
			for range 40 {
				if len(w.evicts) == 1 {
					break
				}
				w.reconcile()
				w.controllers()
				w.kubelet()
			}
			if len(w.evicts) != 1 {
				t.Fatalf("Pods that went: %v", w.evicts)
			}
			do(w)
			if p := w.settle(); len(p.Refused()) > 0 {
				t.Fatalf("refused:\n%s", printPlan(p))
			}
			w.keepsCopies()
		})
	}
}

// TestMigrationThatStops holds that a migration whose first Pod does not come up stops there,
// and goes on when the spec is mended: the approval still counts. A person who gives up says
// so by the field, and has the cluster as it was.
func TestMigrationThatStops(t *testing.T) {
	t.Parallel()
	ways := map[string]struct {
		do   func(*world)
		kept string
	}{
		"the spec is mended": {func(w *world) {
			w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-3.0.5" })
		}, "data"},
		"a person gives up": {func(w *world) { w.wants(new(false)) }, ""},
		"a person gives up, and takes the approval away": {func(w *world) {
			w.annotated(dorisv1.AnnotationRuntimeConfigMigration, "")
			w.wants(new(false))
		}, ""},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := ran["taken over"](t)
			w.broken["doris-be-1"] = true
			w.approves(w.approvalNow())
			before := w.templateOf("doris-fe")
			w.settle()
			if got := w.keptOn("doris-be"); got != "" {
				t.Errorf("the template was not put back: %q", got)
			}
			if stalled := condition(w.dc, meta.ConditionStalled); !strings.HasPrefix(stalled, "True "+meta.ReasonMemberFailed) {
				t.Errorf("Stalled is %q", stalled)
			}
			if diff := cmp.Diff(before, w.templateOf("doris-fe")); diff != "" || len(w.evicts) != 1 {
				t.Errorf("Pods went: %v; template of the frontends (-before +after):\n%s", w.evicts, diff)
			}
			delete(w.broken, "doris-be-1")
			way.do(w)
			if p := w.settle(); len(p.Refused()) > 0 {
				t.Fatalf("refused:\n%s", printPlan(p))
			}
			if got := w.keptOn("doris-be"); got != way.kept {
				t.Errorf("settings are kept on %q, want %q", got, way.kept)
			}
			if way.kept != "" {
				w.keepsCopies()
			}
			if said := condition(w.dc, meta.ConditionReady); !strings.HasPrefix(said, "True") {
				t.Errorf("Ready is %q", said)
			}
		})
	}
}
