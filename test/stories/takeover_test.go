package stories

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/test/story"
)

const compatDir = root + "../shared/compat/doris/"

// found is a cluster of another operator in a namespace of its own.
type found struct {
	*scene
	file, name string
	// parts makes the components, one after the other.
	parts func() []func()
	// held are the sets whose Pods would lose their data by a change.
	held []string
	// before the takeover
	pods, workloads, services map[string]string
}

// TestTakeoverMovesNothing takes clusters of the existing operator over: those
// that were recorded of it, where they are at hand, and some of our own. No Pod
// goes and no template changes; an autoscaler looks at the resource from then on.
// Then an image is edited: it rolls where the data is kept, and waits for consent
// where it would be lost.
func TestTakeoverMovesNothing(t *testing.T) {
	t.Parallel()
	all := foundClusters(t)
	var namespaces []string
	for _, f := range all {
		namespaces = append(namespaces, f.namespace)
		f.remember()
	}
	mark := all[0].mark()
	op := all[0].operate(func(o *settings) { o.Namespaces = namespaces })
	for _, f := range all {
		f.takenOver(f.name)
	}
	time.Sleep(5 * time.Second) // in which nothing may happen
	for _, f := range all {
		f.movedNothing()
		t.Logf("%s: %d writes", f.file, f.writes(mark))
	}
	op.end(syscall.SIGTERM)
	mark = all[0].mark()
	op.start()
	time.Sleep(3 * time.Second) // what a new operator does, it has done by now
	for _, f := range all {
		f.quiet(time.Second)
		if n := f.writes(mark); n > 0 {
			t.Errorf("%s: the second start made %d writes", f.file, n)
		}
		f.editImages()
	}
	for _, f := range all {
		f.followsImages()
	}
}

// losing are the sets of recorded clusters whose Pods lose their data when they
// are replaced: a single frontend, and backends, without claims.
var losing = map[string][]string{
	"doriscluster-sample-broker.yaml":        {"doriscluster-sample-fe", "doriscluster-sample-be"},
	"doriscluster-sample-configmap.yaml":     {"doriscluster-sample-configmap-be"},
	"doriscluster-sample-fe-observer.yaml":   {"doriscluster-sample-be"},
	"doriscluster-sample-system-params.yaml": {"doriscluster-sample-system-params-be"},
	"doriscluster-sample.yaml":               {"doriscluster-sample-be"},
}

func foundClusters(t *testing.T) []*found {
	t.Helper()
	all := []*found{
		{file: "testdata/legacy/plain.yaml", name: "plain", held: []string{"plain-be", "plain-fe"}},
		{file: "testdata/legacy/claims.yaml", name: "claims"},
		{file: "testdata/legacy/configured.yaml", name: "configured"},
		{file: "testdata/legacy/everything.yaml", name: "everything", held: []string{"everything-be"}},
		{file: "testdata/legacy/components.yaml", name: "components"},
	}
	for _, f := range all {
		f.parts = func() []func() { return f.legacyParts(readFile(t, f.file)) }
	}
	recorded, err := filepath.Glob(compatDir + "live/doriscluster-*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(recorded) == 0 {
		t.Log("the recorded clusters are not here")
	}
	for _, file := range recorded {
		f := &found{file: filepath.Base(file)}
		f.parts = func() []func() { return f.recorded(file) }
		all = append(all, f)
	}
	var scenes []*scene
	var parts [][]func()
	for _, f := range all {
		f.scene = newScene(t)
		scenes, parts = append(scenes, f.scene), append(parts, f.parts())
	}
	together(scenes, parts)
	return all
}

// recorded makes a recorded cluster: the resource as people write it, and the
// workloads as the existing operator had made them.
func (f *found) recorded(file string) []func() {
	f.Helper()
	f.held = losing[f.file]
	example := compatDir + "examples/" + f.file
	for _, u := range story.Documents(readFile(f.T, example)) {
		if u.GetKind() == dorisv1.Kind {
			f.name = u.GetName()
			u.SetNamespace(f.namespace)
			if err := f.client.Create(f.Context(), &u); err != nil {
				f.Fatal(err)
			}
		}
	}
	f.bringConfigMaps(example)
	uid := f.doris(f.name).UID
	var first, others []func()
	for _, u := range story.Documents(readFile(f.T, file)) {
		switch {
		case u.GetKind() == dorisv1.Kind:
			f.recordedStatus(u)
		case u.GetKind() == "PersistentVolumeClaim": // made again
		case u.GetKind() == "StatefulSet" && !strings.HasSuffix(u.GetName(), "-fe"):
			others = append(others, func() { f.recreate(u, uid) })
		default:
			first = append(first, func() { f.recreate(u, uid) })
		}
	}
	return []func(){inTurn(first), inTurn(others)}
}

func inTurn(acts []func()) func() {
	return func() {
		for _, act := range acts {
			act()
		}
	}
}

func (f *found) recreate(u unstructured.Unstructured, uid types.UID) {
	f.Helper()
	if u.GetKind() == "Service" {
		withoutAddresses(u)
	}
	u.SetNamespace(f.namespace)
	refs := u.GetOwnerReferences()
	for i := range refs {
		refs[i].UID = uid
	}
	u.SetOwnerReferences(refs)
	if err := client.IgnoreAlreadyExists(f.client.Create(f.Context(), &u, client.FieldOwner(legacyManager))); err != nil {
		f.Fatalf("%s: %s %s: %v", f.file, u.GetKind(), u.GetName(), err)
	}
}

// recordedStatus writes what the existing operator had said of the cluster.
func (f *found) recordedStatus(u unstructured.Unstructured) {
	f.Helper()
	now := &unstructured.Unstructured{}
	now.SetGroupVersionKind(dorisv1.GroupVersionKind())
	f.get(f.name, now)
	now.Object["status"] = u.Object["status"]
	if err := f.client.Status().Update(f.Context(), now, client.FieldOwner(legacyManager)); err != nil {
		f.Fatal(err)
	}
}

// withoutAddresses takes out of a Service what the API server assigns.
func withoutAddresses(u unstructured.Unstructured) {
	spec := u.Object["spec"].(map[string]any)
	if spec["clusterIP"] != corev1.ClusterIPNone {
		delete(spec, "clusterIP")
		delete(spec, "clusterIPs")
	}
	for _, p := range spec["ports"].([]any) {
		delete(p.(map[string]any), "nodePort")
	}
}

func (f *found) remember() {
	f.Helper()
	f.pods, f.workloads, f.services = f.identities(), f.scene.workloads(), f.servicesNow()
}

func (f *found) servicesNow() map[string]string {
	f.Helper()
	out := map[string]string{}
	for _, o := range f.list(&corev1.ServiceList{}) {
		out[o.GetName()] = jsonOf(f.T, o.(*corev1.Service).Spec)
	}
	return out
}

func (f *found) movedNothing() {
	f.Helper()
	same := func(what string, before, after map[string]string) {
		f.Helper()
		if diff := cmp.Diff(before, after); diff != "" {
			f.Errorf("%s: %s (-before +after):\n%s", f.file, what, diff)
		}
	}
	same("Pods", f.pods, f.identities())
	same("templates, claim templates and replicas", f.workloads, f.scene.workloads())
	same("Services", f.services, f.servicesNow())
	for _, o := range f.list(&appsv1.StatefulSetList{}) {
		set := o.(*appsv1.StatefulSet)
		if set.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType || set.Spec.UpdateStrategy.RollingUpdate != nil {
			f.Errorf("%s: the update strategy of %s is %+v", f.file, set.Name, set.Spec.UpdateStrategy)
		}
		if set.Annotations["app.doris.components/hash"] == "" || set.Annotations[meta.AnnotationRevision] != "0" {
			f.Errorf("%s: the annotations of %s are %v", f.file, set.Name, set.Annotations)
		}
	}
	for _, o := range f.list(&autoscalingv2.HorizontalPodAutoscalerList{}) {
		if target := o.(*autoscalingv2.HorizontalPodAutoscaler).Spec.ScaleTargetRef; target.Kind != dorisv1.Kind || target.Name != f.name {
			f.Errorf("%s: autoscaler %s looks at %+v", f.file, o.GetName(), target)
		}
	}
	f.says(f.name, meta.ConditionReady, metav1.ConditionTrue)
}

const newFrontend, newBackend = "apache/doris:fe-2.1.9", "apache/doris:be-2.1.9"

func (f *found) editImages() {
	f.Helper()
	f.edit(f.name, func(dc *dorisv1.DorisCluster) {
		dc.Spec.FeSpec.Image = newFrontend
		if dc.Spec.BeSpec != nil {
			dc.Spec.BeSpec.Image = newBackend
		}
	})
}

// followsImages holds that the edit was carried out where no data goes, and
// elsewhere after consent; one Pod at a time, as the history tells.
func (f *found) followsImages() {
	f.Helper()
	rolled := map[string]bool{}
	for _, o := range f.list(&appsv1.StatefulSetList{}) {
		c := o.GetLabels()[dorisv1.LabelComponent]
		rolled[o.GetName()] = (c == "fe" || c == "be") && !slices.Contains(f.held, o.GetName())
	}
	f.follow("without consent", rolled)
	var digests []string
	p := f.plannedBy(f.present(), f.name)
	for _, set := range f.held {
		rolled[set] = true
		digests = append(digests, f.digest(p, "StatefulSet/"+set, plan.CauseUser))
		for _, c := range p.Held() {
			if c.Object.Name == set && c.Cause == plan.CauseUser && c.Effect != plan.EffectDataLoss {
				f.Errorf("%s: held is %+v, which is not said to lose data", f.file, c)
			}
		}
	}
	if len(digests) > 0 {
		f.approve(f.name, digests...)
	}
	f.follow("with consent", rolled)
}

// follow waits until the Pods of some sets are new, and holds that no others are.
func (f *found) follow(when string, rolled map[string]bool) {
	f.Helper()
	image := func(name string) string {
		if strings.HasSuffix(name, "-fe") {
			return newFrontend
		}
		return newBackend
	}
	f.eventually(fmt.Sprintf("%s: the image is followed %s", f.file, when), func() string {
		for _, p := range f.scene.pods("") {
			set := p.Name[:strings.LastIndex(p.Name, "-")]
			if rolled[set] && (p.Spec.Containers[0].Image != image(set) || !story.PodReady(&p)) {
				return p.Name + " does not"
			}
		}
		return ""
	})
	f.settled(f.name)
	for _, p := range f.scene.pods("") {
		set := p.Name[:strings.LastIndex(p.Name, "-")]
		if was := f.pods[p.Name] != string(p.UID); was != rolled[set] {
			f.Errorf("%s: %s: %s was replaced: %t", f.file, when, p.Name, was)
		}
	}
}
