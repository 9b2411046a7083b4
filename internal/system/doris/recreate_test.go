package doris

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// approveHeld consents to everything that is held.
func (w *world) approveHeld() {
	w.Helper()
	p, _ := w.plan(w.store.Now())
	var digests []string
	for _, s := range p.HeldSets() {
		digests = append(digests, s.Approve)
	}
	if len(digests) == 0 {
		w.Fatalf("nothing is held:\n%s", printPlan(p))
	}
	w.asks(map[string]string{meta.AnnotationApprove: strings.Join(digests, ",")})
}

// drive plans and carries out one step at a time, with the rest of the cluster acting in
// between where act says so, until nothing is left to do.
func (w *world) drive(act func(), stop func(n int) (after bool, stop bool)) (writes int) {
	w.Helper()
	for idle := 0; idle < 3; {
		p, observed := w.plan(w.store.Now())
		w.report(p, observed)
		var next plan.Step
		if len(p.Steps) > 0 {
			next = p.Steps[0]
		}
		_, waits := next.(plan.Wait)
		if next == nil || waits {
			before := w.store.Now().Version
			act()
			if w.store.Now().Version == before {
				idle++
			}
			continue
		}
		writes++
		if writes > 60 {
			w.Fatalf("it goes on and on:\n%s", printPlan(p))
		}
		after, cut := stop(writes)
		if !cut || after {
			w.must(w.step(next))
		}
		if cut {
			return writes
		}
	}
	return writes
}

func (w *world) acts() {
	w.controllers()
	w.kubelet()
	if w.disks != nil {
		w.disks.grown(w)
	}
}

func TestALargerClaimOfASetIsHeldAndSaysWhatItTakes(t *testing.T) {
	w := withDisks(t, dorisv1.PVCProvisionerStatefulSet)
	w.grow("2Gi")
	p := w.settle()
	want := []string{`spec.volumeClaimTemplates[name="data"].spec.resources.requests.storage user recreate hold`}
	if diff := cmp.Diff(want, changesOf(p, "StatefulSet/doris-be")); diff != "" {
		t.Error(diff)
	}
	if len(p.HeldSets()) != 1 || len(w.disks.patches) > 0 {
		t.Errorf("held %v, patches %v", p.HeldSets(), w.disks.patches)
	}
	if got := condition(w.dc, meta.ConditionReady); !strings.HasPrefix(got, "True") {
		t.Errorf("Ready: %s", got)
	}
	w.grow("1Gi")
	if p := w.settle(); len(p.Changes) > 0 {
		t.Errorf("put back, and still\n%s", printPlan(p))
	}
}

func TestASetIsMadeAgainWhilePodsRun(t *testing.T) {
	w := withDisks(t, dorisv1.PVCProvisionerStatefulSet)
	w.grow("2Gi")
	w.settle()
	before, was := podUIDs(w), object(w, "doris-be", &appsv1.StatefulSet{}).DeepCopy()
	w.approveHeld()
	for range 6 { // nothing else is in the way of the Pods
		w.reconcile()
		if got := condition(w.dc, meta.ConditionAvailable); !strings.HasPrefix(got, "True") {
			t.Errorf("Available: %s", got)
		}
		w.acts()
	}
	w.asks(nil)
	if p := w.settle(); len(p.Changes) > 0 {
		t.Fatalf("changes:\n%s", printPlan(p))
	}
	wentWell(t, w, before, was)
	w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Replicas = new(int32(4)) })
	w.settle()
	if got := object(w, "data-doris-be-3", &corev1.PersistentVolumeClaim{}).Spec.Resources.Requests.Storage().String(); got != "2Gi" {
		t.Errorf("the claim of a new replica asks for %s", got)
	}
}

// wentWell holds that a set was made again with larger claims, and that everything
// else is as it was.
func wentWell(t *testing.T, w *world, before map[string]string, was *appsv1.StatefulSet) {
	t.Helper()
	if diff := cmp.Diff(before, podUIDs(w)); diff != "" {
		t.Errorf("Pods are others: %s", diff)
	}
	now := object(w, "doris-be", &appsv1.StatefulSet{})
	if now.UID == was.UID {
		t.Error("the set is the same")
	}
	if got := now.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage().String(); got != "2Gi" {
		t.Errorf("its claims are to have %s", got)
	}
	wanted := was.DeepCopy()
	wanted.Spec.VolumeClaimTemplates = now.Spec.VolumeClaimTemplates
	if diff := cmp.Diff(wanted.Spec, now.Spec); diff != "" {
		t.Errorf("the set is another one: %s", diff)
	}
	if diff := cmp.Diff([]any{wanted.Labels, wanted.Annotations, wanted.OwnerReferences}, []any{now.Labels, now.Annotations, now.OwnerReferences}); diff != "" {
		t.Errorf("the set is another one: %s", diff)
	}
	ownedBefore, err := testEngine.Owned(was, FieldManager)
	if err != nil {
		t.Fatal(err)
	}
	ownedNow, err := testEngine.Owned(now, FieldManager)
	if err != nil {
		t.Fatal(err)
	}
	if one, two := fieldNames(ownedBefore), fieldNames(ownedNow); one != two {
		t.Errorf("owned are others: %s", cmp.Diff(one, two))
	}
	for n := range 3 {
		claim := object(w, fmt.Sprintf("data-doris-be-%d", n), &corev1.PersistentVolumeClaim{})
		if got := claim.Spec.Resources.Requests.Storage().String(); got != "2Gi" {
			t.Errorf("%s asks for %s", claim.Name, got)
		}
	}
	if w.store.Now().Get(keyOf(&corev1.ConfigMap{ObjectMeta: now.ObjectMeta})) != nil {
		t.Error("the note is still there")
	}
	named := &corev1.ConfigMap{}
	named.Name = AgainName("doris", dorisv1.ComponentBE)
	if w.store.Now().Get(keyOf(named)) != nil {
		t.Error("the note is still there")
	}
}

// fieldNames prints which fields there are in a tree, without what the operator keeps of
// consents.
func fieldNames(tree map[string]any) string {
	text, _ := json.Marshal(blank(tree))
	return string(text)
}

func blank(tree any) any {
	switch t := tree.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, v := range t {
			if k != meta.AnnotationConsents {
				out[k] = blank(v)
			}
		}
		return out
	case []any:
		var out []any
		for _, v := range t {
			out = append(out, blank(v))
		}
		return out
	}
	return ""
}

// The operator is killed before and after each write of the whole way, and comes back
// to what it finds.
func TestASetIsMadeAgainWhateverIsCutShort(t *testing.T) {
	whole := func(stop func(n int) (bool, bool)) (*world, map[string]string, *appsv1.StatefulSet, int) {
		w := withDisks(t, dorisv1.PVCProvisionerStatefulSet)
		w.grow("2Gi")
		w.settle()
		before, was := podUIDs(w), object(w, "doris-be", &appsv1.StatefulSet{}).DeepCopy()
		w.approveHeld()
		return w, before, was, w.drive(w.acts, stop)
	}
	undisturbed := func() int {
		_, _, _, writes := whole(func(int) (bool, bool) { return false, false })
		return writes
	}
	writes := undisturbed()
	if writes < 8 { // three claims, the note, the deletion, the set, its fields, the note
		t.Fatalf("only %d writes", writes)
	}
	for cut := 1; cut <= writes; cut++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("write %d, after: %v", cut, after), func(t *testing.T) {
				w, before, was, _ := whole(func(n int) (bool, bool) { return after, n == cut })
				w.reporter = t
				w.acts() // the world goes on meanwhile
				w.drive(w.acts, func(int) (bool, bool) { return false, false })
				w.asks(nil)
				if p := w.settle(); len(p.Changes) > 0 {
					t.Fatalf("changes:\n%s", printPlan(p))
				}
				wentWell(t, w, before, was)
			})
		}
	}
	t.Logf("%d writes, each cut before and after", writes)
}

func TestWhatOthersSaidInASetThatIsMadeAgainStays(t *testing.T) {
	w := withDisks(t, dorisv1.PVCProvisionerStatefulSet)
	stranger(w, "doris-be", &appsv1.StatefulSet{}, func(s *appsv1.StatefulSet) {
		s.Annotations["team"] = "shop"
		s.Spec.Template.Annotations[restartKubectl] = "2026-01-01T00:00:00Z"
		s.Spec.Template.Spec.Containers[0].Env = append(s.Spec.Template.Spec.Containers[0].Env, corev1.EnvVar{Name: "THEIRS", Value: "1"})
	})
	w.settle()
	w.grow("2Gi")
	p := w.settle()
	before, was := podUIDs(w), object(w, "doris-be", &appsv1.StatefulSet{}).DeepCopy()
	for _, s := range p.HeldSets() {
		if s.Changes[0].Effect == plan.EffectRecreate {
			w.asks(map[string]string{meta.AnnotationApprove: s.Approve})
		}
	}
	w.drive(w.acts, func(int) (bool, bool) { return false, false })
	w.asks(nil)
	w.settle()
	wentWell(t, w, before, was)
}

func TestTheNoteOfASetGoesWhenConsentIsWithdrawn(t *testing.T) {
	w := withDisks(t, dorisv1.PVCProvisionerStatefulSet)
	w.grow("2Gi")
	w.settle()
	w.approveHeld()
	w.drive(w.acts, func(n int) (bool, bool) { return true, n == 4 })
	note := &corev1.ConfigMap{}
	note.Name = AgainName("doris", dorisv1.ComponentBE)
	if w.store.Now().Get(keyOf(note)) == nil {
		t.Fatal("there is no note")
	}
	w.asks(nil)
	w.settle()
	if w.store.Now().Get(keyOf(note)) != nil {
		t.Error("the note is still there")
	}
}

func TestASetComesBackWhateverTheSpecSaysMeanwhile(t *testing.T) {
	w := withDisks(t, dorisv1.PVCProvisionerStatefulSet)
	w.grow("2Gi")
	w.settle()
	before := podUIDs(w)
	w.approveHeld()
	w.drive(w.acts, func(n int) (bool, bool) { return true, n == 5 })
	w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.PersistentVolumes[0].Name = "No_Name" })
	w.asks(nil)
	p := w.settle()
	if len(p.Refused()) == 0 {
		t.Error("the spec is not refused")
	}
	object(w, "doris-be", &appsv1.StatefulSet{})
	if diff := cmp.Diff(before, podUIDs(w)); diff != "" {
		t.Errorf("Pods are others: %s", diff)
	}
}

func TestASetIsMadeAgainOnlyWhenItsPodsAreThere(t *testing.T) {
	w := withDisks(t, dorisv1.PVCProvisionerStatefulSet)
	w.grow("2Gi")
	w.settle()
	w.approveHeld()
	w.broken["doris-be-1"] = true
	w.kubelet()
	w.settle()
	w.disks.grown(w)
	p := w.settle()
	if want := `spec.volumeClaimTemplates[name="data"].spec.resources.requests.storage user recreate wait`; !strings.Contains(strings.Join(changesOf(p, "StatefulSet/doris-be"), "\n"), want) {
		t.Errorf("changes\n%s", printPlan(p))
	}
	if len(w.disks.patches) != 3 {
		t.Errorf("claims grow all the same: %v", w.disks.patches)
	}
	if got := condition(w.dc, meta.ConditionReconciling); !strings.Contains(got, "is made again when doris-be-1 is ready") {
		t.Errorf("Reconciling: %s", got)
	}
}

func TestThePasswordOfATemplateIsNotWrittenDown(t *testing.T) {
	set := &appsv1.StatefulSet{}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "be", Env: []corev1.EnvVar{{Name: "PASSWD", Value: "hunter2"}, {Name: "PASSWD", Value: "hunter2"}}}}
	p := planner{dc: &dorisv1.DorisCluster{Spec: dorisv1.DorisClusterSpec{AdminUser: &dorisv1.AdminUser{Password: "hunter2"}}}}
	whole := set.DeepCopy()
	if got := p.passwordOf(set); got != "hunter2" {
		t.Errorf("password %q", got)
	}
	hidePassword(set)
	if text := encoded(set); strings.Contains(text, "hunter2") {
		t.Errorf("written down: %s", text)
	}
	p.withPassword(set)
	if diff := cmp.Diff(whole, set); diff != "" {
		t.Errorf("it does not come back: %s", diff)
	}
	owned := map[string]any{"env": []any{map[string]any{"name": "PASSWD", "value": "hunter2"}}}
	withoutPasswords(owned)
	if text := encoded(owned); strings.Contains(text, "hunter2") {
		t.Errorf("written down: %s", text)
	}
}

// Two sets of changes of one StatefulSet that are approved at once are both carried out,
// though one of them has it made again.
func TestTwoConsentsOnOneSetAreBothGood(t *testing.T) {
	w := withDisks(t, dorisv1.PVCProvisionerStatefulSet)
	stranger(w, "doris-be", &appsv1.StatefulSet{}, func(s *appsv1.StatefulSet) { s.Spec.Template.Spec.Containers[0].Image = "apache/doris:strange" })
	w.grow("2Gi")
	w.settle()
	w.approveHeld()
	if got := len(strings.Split(w.dc.Annotations[meta.AnnotationApprove], ",")); got != 2 {
		t.Fatalf("%d sets are held", got)
	}
	for range 10 {
		w.reconcile()
		w.acts()
	}
	p := w.settle()
	if held := p.HeldSets(); len(held) > 0 {
		t.Errorf("still held: %+v", held)
	}
	set := object(w, "doris-be", &appsv1.StatefulSet{})
	if got := set.Spec.Template.Spec.Containers[0].Image; got == "apache/doris:strange" {
		t.Errorf("the template has %s", got)
	}
	if got := set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage().String(); got != "2Gi" {
		t.Errorf("claims are to have %s", got)
	}
}
