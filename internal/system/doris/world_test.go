package doris

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/apply"
	"github.com/fairlead-dev/fairlead/internal/diff"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/status"
	"github.com/fairlead-dev/fairlead/test/sim"
)

var (
	testScheme = func() *runtime.Scheme {
		s := runtime.NewScheme()
		if err := errors.Join(clientgoscheme.AddToScheme(s), dorisv1.AddToScheme(s)); err != nil {
			panic(err)
		}
		return s
	}()
	testEngine = diff.New(testScheme)
	testTime   = time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
)

// reporter is what *testing.T and *rapid.T share.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// world is one DorisCluster in a simulated cluster: a test double in which the
// StatefulSet controller and the kubelet act when they are told to. The store
// is shared with other planners' tests.
type world struct {
	reporter
	store  *sim.Store
	system *System
	dc     *dorisv1.DorisCluster
	now    time.Time
	// written is the version of the operator's own last write: older views are
	// never seen.
	written int64
	// broken Pods never become ready, nor do those with an image that holds "bad".
	broken map[string]bool
	// lost Pods are on a node that nobody hears from.
	lost   map[string]bool
	served bool // a frontend was ready at some time
	ready  map[string]bool
	evicts []string
	nodes  *nodesDouble    // nil unless a test asks nodes
	db     *databaseDouble // nil unless a test asks the database
	// clocked has the kubelet say since when Pods are ready.
	clocked bool
	disks   *disksDouble // nil unless a test looks at claims
	sizes   *sizesDouble // nil unless nodes can resize
}

func newWorld(r reporter, manifest string) *world {
	w := &world{
		reporter: r, store: sim.NewStore(testScheme), system: New(testEngine), now: testTime,
		dc: &dorisv1.DorisCluster{}, broken: map[string]bool{}, ready: map[string]bool{},
	}
	for doc := range strings.SplitSeq(manifest, "\n---\n") {
		var head metav1.TypeMeta
		w.must(yaml.Unmarshal([]byte(doc), &head))
		switch head.Kind {
		case "ConfigMap":
			w.user(doc, &corev1.ConfigMap{})
		case "Secret":
			w.user(doc, &corev1.Secret{})
		case dorisv1.Kind:
			w.must(yaml.UnmarshalStrict([]byte(doc), w.dc))
		default:
			r.Fatalf("manifest has a %q", head.Kind)
		}
	}
	w.dc.Namespace, w.dc.UID, w.dc.Generation = "shop", "uid-of-the-cluster", 1
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatalf("%v", err)
	}
}

// user creates an object that a user makes.
func (w *world) user(doc string, into client.Object) {
	w.Helper()
	w.must(yaml.Unmarshal([]byte(doc), into))
	into.SetNamespace("shop")
	_, err := w.store.Create(into, "user")
	w.must(err)
}

// edit changes the spec.
func (w *world) edit(change func(*dorisv1.DorisClusterSpec)) {
	before := w.dc.Spec.DeepCopy()
	change(&w.dc.Spec)
	if !reflect.DeepEqual(before, &w.dc.Spec) {
		w.dc.Generation++
	}
}

func keyOf(o client.Object) sim.Key {
	gvk, err := apiutil.GVKForObject(o, testScheme)
	if err != nil {
		panic(err)
	}
	return sim.Key{Kind: gvk, NamespacedName: types.NamespacedName{Namespace: "shop", Name: o.GetName()}}
}

// object returns an object as it is live; it must be there.
func object[T client.Object](w *world, name string, kind T) T {
	w.Helper()
	kind.SetName(name)
	got, ok := w.store.Now().Get(keyOf(kind)).(T)
	if !ok {
		w.Fatalf("there is no %T %s", kind, name)
	}
	return got
}

// stranger edits an object behind the operator's back.
func stranger[T client.Object](w *world, name string, kind T, do func(T)) {
	w.Helper()
	o := object(w, name, kind)
	do(o)
	_, err := w.store.Update(o, "stranger")
	w.must(err)
}

// view reads what a Snapshot holds.
type view struct{ sim.Snapshot }

func (v view) Get(_ context.Context, key types.NamespacedName, obj client.Object) error {
	gvk, err := apiutil.GVKForObject(obj, testScheme)
	if err != nil {
		return err
	}
	got := v.Snapshot.Get(sim.Key{Kind: gvk, NamespacedName: key})
	if got == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: gvk.Kind}, key.Name)
	}
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(got).Elem())
	return nil
}

func (v view) Owned(_ context.Context, list client.ObjectList) error {
	switch into := list.(type) {
	case *corev1.PodList:
		for _, o := range v.List(corev1.SchemeGroupVersion.WithKind("Pod"), "shop") {
			into.Items = append(into.Items, *o.(*corev1.Pod))
		}
	case *corev1.ConfigMapList:
		for _, o := range v.List(corev1.SchemeGroupVersion.WithKind("ConfigMap"), "shop") {
			if len(o.GetOwnerReferences()) > 0 {
				into.Items = append(into.Items, *o.(*corev1.ConfigMap))
			}
		}
	case *corev1.PersistentVolumeClaimList:
		for _, o := range v.List(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), "shop") {
			into.Items = append(into.Items, *o.(*corev1.PersistentVolumeClaim))
		}
	default:
		return fmt.Errorf("a list of %T", list)
	}
	return nil
}

func (v view) Neighbours(_ context.Context, list client.ObjectList) error {
	into, ok := list.(*policyv1.PodDisruptionBudgetList)
	if !ok {
		return fmt.Errorf("neighbours: a list of %T", list)
	}
	for _, o := range v.List(policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"), "shop") {
		into.Items = append(into.Items, *o.(*policyv1.PodDisruptionBudget))
	}
	return nil
}

func (v view) ConfigMap(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	cm := &corev1.ConfigMap{}
	err := v.Get(ctx, types.NamespacedName{Namespace: "shop", Name: name}, cm)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return cm, err
}

func (v view) Secret(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	s := &corev1.Secret{}
	err := v.Get(ctx, types.NamespacedName{Namespace: "shop", Name: name}, s)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: s.ObjectMeta}, err
}

func (v view) Claim(ctx context.Context, name string) (*corev1.PersistentVolumeClaim, error) {
	claim := &corev1.PersistentVolumeClaim{}
	err := v.Get(ctx, types.NamespacedName{Namespace: "shop", Name: name}, claim)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return claim, err
}

func (v view) Revisions(_ context.Context, set *appsv1.StatefulSet) ([]appsv1.ControllerRevision, error) {
	var out []appsv1.ControllerRevision
	for _, o := range v.List(appsv1.SchemeGroupVersion.WithKind("ControllerRevision"), "shop") {
		if metav1.IsControlledBy(o, set) {
			out = append(out, *o.(*appsv1.ControllerRevision))
		}
	}
	return out, nil
}

// plan observes a view and plans, twice, and holds that both are the same.
func (w *world) plan(snapshot sim.Snapshot) (plan.Plan, World) {
	w.Helper()
	observed, err := w.system.Observe(context.Background(), view{snapshot}, w.dc)
	w.must(err)
	p, err := w.system.Plan(w.dc, observed, w.now)
	w.must(err)
	again, err := w.system.Plan(w.dc.DeepCopy(), observed, w.now)
	w.must(err)
	if one, two := printPlan(p), printPlan(again); one != two {
		w.Fatalf("the same input gave two plans:\n%s\n%s", one, two)
	}
	w.must(p.Covered())
	return p, observed
}

// step carries out one step as the API server would.
func (w *world) step(s plan.Step) error {
	w.Helper()
	defer func() { w.written = w.store.Now().Version }()
	switch x := s.(type) {
	case plan.Apply:
		w.invariants(x)
		if live := w.store.Now().Get(keyOf(x.Object)); x.Exact && live != nil && live.GetResourceVersion() != x.Live {
			return apierrors.NewConflict(schema.GroupResource{Resource: x.Target().Kind}, live.GetName(), errors.New("it is of another version"))
		}
		_, _, err := w.store.Apply(x.Object, x.Manager)
		w.nodes.applied(w, x.Target().String())
		return err
	case plan.Patch:
		switch x.Subresource {
		case "scale":
			return w.scale(x)
		case "resize":
			return w.sizes.resize(w, x)
		}
		if dc, is := x.Object.(*dorisv1.DorisCluster); is {
			return w.note(dc, x)
		}
		if refused := w.disks.mayPatch(w, x); refused != nil {
			return refused
		}
		return w.merge(x.Object, x.Fields, x.Manager)
	case plan.Create:
		_, err := w.store.Create(x.Object, x.Manager)
		return err
	case plan.Delete:
		if x.Orphan {
			return w.orphan(x.Object)
		}
		return w.store.Delete(keyOf(x.Object), x.Object.GetUID(), false)
	case plan.Adopt:
		fields, err := apply.Adoption(testEngine, x, w.store.Now().Get(keyOf(x.Object)))
		if err != nil || fields == nil {
			return err
		}
		return w.merge(x.Object, fields, x.Manager)
	case plan.Disown:
		fields, err := apply.Disowning(x, w.store.Now().Get(keyOf(x.Object)))
		if err != nil {
			return err
		}
		return w.merge(x.Object, fields, x.Manager)
	case plan.Evict:
		live := w.store.Now().Get(keyOf(x.Pod))
		if live == nil {
			return nil
		}
		if live.GetUID() != x.Pod.GetUID() || live.GetResourceVersion() != x.Pod.GetResourceVersion() {
			return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, live.GetName(), errors.New("it is another one"))
		}
		w.mayGo(live.(*corev1.Pod))
		w.evicts = append(w.evicts, live.GetName())
		w.db.mayGo(live.(*corev1.Pod))
		w.nodes.goes(w, live.(*corev1.Pod))
		return w.store.Delete(keyOf(live), live.GetUID(), true)
	}
	if gone, is := s.(plan.Delete); is {
		if _, set := gone.Object.(*appsv1.StatefulSet); set {
			w.db.mayShrink(gone.Object.GetName(), 10, 0)
		}
		return w.store.Delete(keyOf(gone.Object), gone.Object.GetUID(), false)
	}
	if call, is := s.(plan.Call); is {
		return w.nodes.call(w, call)
	}
	return fmt.Errorf("unexpected step %T on %s", s, s.Target())
}

func (w *world) merge(observed client.Object, fields map[string]any, manager string) error {
	body, err := apply.PatchBody(observed, fields)
	if err != nil {
		return err
	}
	_, err = w.store.Patch(keyOf(observed), body, manager)
	return err
}

// invariants are what no apply may break.
func (w *world) invariants(a plan.Apply) {
	w.Helper()
	set, ok := a.Object.(*appsv1.StatefulSet)
	if !ok {
		if a.Target().Kind != "StatefulSet" {
			return
		}
		set = &appsv1.StatefulSet{}
		text, err := json.Marshal(a.Object)
		w.must(err)
		w.must(json.Unmarshal(text, set))
	}
	live, exists := w.store.Now().Get(keyOf(set)).(*appsv1.StatefulSet)
	if !exists {
		external, _ := externalFrontends(&w.dc.Spec.BeSpec.BaseSpec)
		if strings.HasSuffix(set.Name, "-be") && !w.served && w.dc.Spec.FeSpec != nil && len(external) == 0 {
			w.Errorf("backends are made before a frontend has served")
		}
		return
	}
	w.tellsHistory(live, set)
	switch {
	case set.Spec.Replicas == nil, *set.Spec.Replicas < *live.Spec.Replicas && w.db == nil:
		w.Errorf("%s gets fewer replicas", set.Name)
	case *set.Spec.Replicas < *live.Spec.Replicas:
		w.db.mayShrink(set.Name, *live.Spec.Replicas, *set.Spec.Replicas)
	}
}

// mayGo holds that a Pod which serves goes only while every other one is there
// and ready, and none while another is going.
func (w *world) mayGo(pod *corev1.Pod) {
	w.Helper()
	now, count := w.store.Now(), 0
	for _, p := range w.pods() {
		count++
		switch {
		case p.Name == pod.Name:
		case p.DeletionTimestamp != nil:
			w.Errorf("%s goes while %s is going", pod.Name, p.Name)
		case ready(pod) && !ready(&p):
			w.Errorf("%s, which serves, goes while %s does not serve", pod.Name, p.Name)
		}
	}
	for _, o := range now.List(policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"), "shop") {
		b := o.(*policyv1.PodDisruptionBudget)
		if selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector); err == nil && selector.Matches(labels.Set(pod.Labels)) && ready(pod) && b.Status.DisruptionsAllowed < 1 {
			w.Errorf("%s is to go, and budget %s does not let it", pod.Name, b.Name)
		}
	}
	wanted := 0
	for _, o := range now.List(appsv1.SchemeGroupVersion.WithKind("StatefulSet"), "shop") {
		wanted += int(*o.(*appsv1.StatefulSet).Spec.Replicas)
	}
	if ready(pod) && count < wanted {
		w.Errorf("%s goes while %d of %d Pods are missing", pod.Name, wanted-count, wanted)
	}
}

func (w *world) pods() []corev1.Pod {
	list := &corev1.PodList{}
	w.must(view{w.store.Now()}.Owned(context.Background(), list))
	return list.Items
}

// reconcile plans and applies what the truth asks for, as the kernel does, until
// nothing is left to do now, and reports.
func (w *world) reconcile() plan.Plan {
	w.Helper()
	for range 8 {
		p, observed := w.plan(w.store.Now())
		wrote := false
		for _, s := range p.Steps {
			if _, waits := s.(plan.Wait); waits {
				wrote = false
				break
			}
			w.must(w.step(s))
			wrote = true
		}
		if !wrote {
			w.report(p, observed)
			return p
		}
	}
	w.Fatalf("it does not come to rest")
	return plan.Plan{}
}

func (w *world) report(p plan.Plan, observed World) {
	health := w.system.Report(w.dc, observed, p, w.now)
	w.dc.Status.Conditions = status.Conditions(w.dc.Status.Conditions, status.Input{
		Generation: w.dc.Generation, Now: w.now, Plan: p, Planned: true, Health: &health,
	})
	w.dc.Status.ObservedGeneration = w.dc.Generation
}

// settle lets everybody act until nothing changes any more.
func (w *world) settle() plan.Plan {
	w.Helper()
	for range 200 {
		before := w.store.Now().Version
		p := w.reconcile()
		w.controllers()
		w.kubelet()
		if w.store.Now().Version == before {
			return p
		}
	}
	w.Fatalf("it never settles; the last plan is\n%s", printPlan(w.reconcile()))
	return plan.Plan{}
}

// controllers is the StatefulSet controller: it sees the newest template, and
// makes the Pods that are missing from it; and the disruption controller.
func (w *world) controllers() {
	w.Helper()
	defer w.disruption()
	w.adoptOrphans()
	for _, p := range w.pods() { // without a set there are no Pods, but those that were let go
		if len(p.OwnerReferences) > 0 && w.store.Now().Get(keyOf(&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: p.Name[:strings.LastIndexByte(p.Name, '-')]}})) == nil {
			w.must(w.store.Delete(keyOf(&p), p.UID, false))
		}
	}
	for _, o := range w.store.Now().List(appsv1.SchemeGroupVersion.WithKind("StatefulSet"), "shop") {
		set := o.(*appsv1.StatefulSet)
		text, err := json.Marshal(set.Spec.Template)
		w.must(err)
		seen := set.DeepCopy()
		seen.Status.ObservedGeneration = set.Generation
		seen.Status.UpdateRevision = fmt.Sprintf("%s-%x", set.Name, sha256.Sum256(text))[:len(set.Name)+9]
		if !reflect.DeepEqual(seen.Status, set.Status) {
			w.must(w.store.SetStatus(seen))
		}
		for _, p := range w.pods() {
			if strings.HasPrefix(p.Name, set.Name+"-") && ordinalOf(p.Name) >= int(*set.Spec.Replicas) && p.DeletionTimestamp == nil {
				w.must(w.store.Delete(keyOf(&p), p.UID, true))
			}
		}
		revision := &appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: set.Namespace, Name: seen.Status.UpdateRevision,
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: set.Name, UID: set.UID, Controller: new(true)}},
			},
			Data: runtime.RawExtension{Raw: text},
		}
		if w.store.Now().Get(keyOf(revision)) == nil {
			_, err := w.store.Create(revision, "kube-controller-manager")
			w.must(err)
		}
		for n := range int(*set.Spec.Replicas) {
			pod := podOf(seen, n)
			w.disks.claim(w, seen, n)
			if w.store.Now().Get(keyOf(pod)) == nil {
				_, err := w.store.Create(pod, "kube-controller-manager")
				w.must(err)
			}
		}
	}
}

// disruption is the disruption controller. A test may set what a budget says itself.
func (w *world) disruption() {
	w.Helper()
	for _, o := range w.store.Now().List(policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"), "shop") {
		b := o.(*policyv1.PodDisruptionBudget)
		if b.Labels["judged-by"] == "the test" {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err != nil {
			continue // it covers nothing
		}
		judged := b.DeepCopy()
		judged.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: b.Generation}
		for _, p := range w.pods() {
			if selector.Matches(labels.Set(p.Labels)) {
				judged.Status.ExpectedPods++
				if ready(&p) {
					judged.Status.CurrentHealthy++
				}
			}
		}
		judged.Status.DesiredHealthy = judged.Status.ExpectedPods - 1
		judged.Status.DisruptionsAllowed = max(0, judged.Status.CurrentHealthy-judged.Status.DesiredHealthy)
		if !reflect.DeepEqual(judged.Status, b.Status) {
			w.must(w.store.SetStatus(judged))
		}
	}
}

func podOf(set *appsv1.StatefulSet, ordinal int) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: set.Namespace, Name: fmt.Sprintf("%s-%d", set.Name, ordinal), Labels: map[string]string{},
			Annotations:     maps.Clone(set.Spec.Template.Annotations),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: set.Name, UID: set.UID, Controller: new(true)}},
		},
		Spec: *set.Spec.Template.Spec.DeepCopy(),
	}
	maps.Copy(pod.Labels, set.Spec.Template.Labels)
	pod.Labels[appsv1.ControllerRevisionHashLabelKey] = set.Status.UpdateRevision
	return pod
}

// kubelet lets every Pod go on as far as it gets.
func (w *world) kubelet() {
	w.Helper()
	defer w.disruption()
	for _, p := range w.pods() {
		w.podGoesOn(p.Name)
	}
}

// podGoesOn removes a Pod that is going, and lets any other become ready, or
// fail when it is broken.
func (w *world) podGoesOn(name string) {
	w.Helper()
	pod, ok := w.store.Now().Get(keyOf(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}})).(*corev1.Pod)
	if !ok {
		return
	}
	if pod.DeletionTimestamp != nil {
		w.must(w.store.Delete(keyOf(pod), pod.UID, false))
		return
	}
	if w.lost[name] { // only the control plane has something to say
		pod = pod.DeepCopy()
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}, {Type: corev1.ContainersReady, Status: corev1.ConditionTrue}}
		w.must(w.store.SetStatus(pod))
		return
	}
	main := pod.Spec.Containers[0]
	if strings.Contains(main.Image, "slow") { // there is no room for it, since a while
		pod, since := pod.DeepCopy(), conditionOf(pod, corev1.PodScheduled).LastTransitionTime
		if since.IsZero() {
			since = metav1.NewTime(w.now)
		}
		pod.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "no room", LastTransitionTime: since,
		}}}
		w.must(w.store.SetStatus(pod))
		return
	}
	bad := w.broken[name] || strings.Contains(main.Image, "bad")
	next := pod.DeepCopy()
	next.Status = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: main.Name, Ready: !bad}}}
	next.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if w.clocked {
		next.Status.Conditions[0].LastTransitionTime = metav1.NewTime(w.now)
		if was := conditionOf(pod, corev1.PodReady); was.Status == corev1.ConditionTrue && !bad {
			next.Status.Conditions[0].LastTransitionTime = was.LastTransitionTime
		}
	}
	if w.db != nil {
		next.Status.PodIP = "10.0.0.1"
	}
	if bad {
		next.Status.Phase = corev1.PodPending
		next.Status.Conditions[0].Status = corev1.ConditionFalse
		next.Status.ContainerStatuses[0].State.Waiting = &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}
		if w.nodes != nil && w.nodes.crashes {
			next.Status.ContainerStatuses[0].State.Waiting.Reason = "CrashLoopBackOff"
		}
	}
	if !bad {
		w.nodes.runs(w, next)
	}
	w.sizes.show(next)
	if !reflect.DeepEqual(next.Status, pod.Status) {
		w.must(w.store.SetStatus(next))
	}
	if !bad && strings.Contains(name, "-fe-") {
		w.served = true
	}
}

// printPlan prints all of a plan.
func printPlan(p plan.Plan) string {
	var b bytes.Buffer
	for _, f := range p.Findings {
		fmt.Fprintf(&b, "%s %s: %s\n", f.Severity, f.Field, f.Message)
	}
	for _, c := range p.Changes {
		fmt.Fprintf(&b, "%s %s: %.80s → %.80s | %s %s %s", c.Object, c.Path, c.From, c.To, c.Cause, c.Effect, c.Verdict)
		if c.Reason+c.Message != "" {
			fmt.Fprintf(&b, " | %s: %s", c.Reason, c.Message)
		}
		b.WriteString("\n")
	}
	for _, s := range p.Steps {
		kind := strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", s), "plan."))
		fmt.Fprintf(&b, "→ %s %s: %s\n", kind, s.Target(), s.Why())
	}
	if b.Len() == 0 {
		return "nothing to do\n"
	}
	return b.String()
}

// steps lists the steps of a plan as "Apply StatefulSet/doris-fe".
func steps(p plan.Plan) []string {
	var out []string
	for _, s := range p.Steps {
		out = append(out, strings.TrimPrefix(fmt.Sprintf("%T", s), "plan.")+" "+s.Target().String())
	}
	return out
}

// changes lists the changes of an object as "path cause effect verdict".
func changesOf(p plan.Plan, object string) []string {
	var out []string
	for _, c := range p.Changes {
		if c.Object.String() == object && !plan.Bookkeeping(c.Path) {
			out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", c.Path, c.Cause, c.Effect, c.Verdict)))
		}
	}
	slices.Sort(out)
	return out
}

func condition(dc *dorisv1.DorisCluster, kind string) string {
	for _, c := range dc.Status.Conditions {
		if c.Type == kind {
			return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
		}
	}
	return ""
}

const smallCluster = `
apiVersion: doris.selectdb.com/v1
kind: DorisCluster
metadata: {name: doris}
spec:
  feSpec: {replicas: 1, image: "apache/doris:fe-1", persistentVolumes: [{name: meta, persistentVolumeClaimSpec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}
  beSpec: {replicas: 1, image: "apache/doris:be-1", persistentVolumes: [{name: data, persistentVolumeClaimSpec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}
`

const threeByThree = `
apiVersion: doris.selectdb.com/v1
kind: DorisCluster
metadata: {name: doris}
spec:
  feSpec: {replicas: 3, image: "apache/doris:fe-1", persistentVolumes: [{name: meta, persistentVolumeClaimSpec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}
  beSpec: {replicas: 3, image: "apache/doris:be-1", persistentVolumes: [{name: data, persistentVolumeClaimSpec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}
`

func settled(t *testing.T, manifest string) *world {
	t.Helper()
	w := newWorld(t, manifest)
	if p := w.settle(); len(p.Changes) > 0 {
		t.Fatalf("a settled cluster has changes:\n%s", printPlan(p))
	}
	return w
}
