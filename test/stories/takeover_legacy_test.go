package stories

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/diff"
	"github.com/fairlead-dev/fairlead/internal/observe"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/system/doris"
	"github.com/fairlead-dev/fairlead/test/cluster/audit"
	"github.com/fairlead-dev/fairlead/test/story"
)

// legacyManager is the field manager of the operator that made a cluster before
// ours. It writes by POST and PUT, so all fields are those of updates.
const legacyManager = "dorisoperator"

// pair is a cluster that is taken over: one frontend, two backends, claims, and
// variables and a label that can be taken away.
const pair = `
apiVersion: doris.selectdb.com/v1
kind: DorisCluster
metadata: {name: doris}
spec:
  feSpec:
    replicas: 1
    image: "apache/doris:fe-2.1.8"
    persistentVolumes:
    - {name: meta, mountPath: /opt/apache-doris/fe/doris-meta, persistentVolumeClaimSpec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}
  beSpec:
    replicas: 2
    image: "apache/doris:be-2.1.8"
    envVars: [{name: A, value: a}, {name: B, value: b}]
    podLabels: {tier: gold}
    persistentVolumes:
    - {name: data, mountPath: /opt/apache-doris/be/storage, persistentVolumeClaimSpec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}
`

// legacy makes a cluster as the existing operator would have: by another manager,
// with nothing of ours on it. It waits until all Pods serve. change may alter a
// set before it is made.
func (s *scene) legacy(manifest string, change ...func(*appsv1.StatefulSet)) {
	s.Helper()
	for _, part := range s.legacyParts(manifest, change...) {
		part()
		s.serves() // backends come after a frontend serves
	}
}

// legacyParts are the components of a cluster that the existing operator makes,
// one after the other.
func (s *scene) legacyParts(manifest string, change ...func(*appsv1.StatefulSet)) []func() {
	s.Helper()
	s.create(manifest)
	name, maps := "", map[string]*corev1.ConfigMap{}
	for _, u := range story.Documents(manifest) {
		switch u.GetKind() {
		case dorisv1.Kind:
			name = u.GetName()
		case "ConfigMap":
			cm := &corev1.ConfigMap{}
			s.get(u.GetName(), cm)
			maps[cm.Name] = cm
		}
	}
	dc := s.doris(name)
	in := doris.Inputs{Revision: 0, ConfigMaps: maps, DataInCompute: true}
	objects, findings := doris.Desired(dc, in)
	if refused := refusals(findings); len(refused) > 0 {
		s.Fatalf("the cluster is refused: %v", refused)
	}
	var parts []func()
	for _, c := range objects.Components {
		parts = append(parts, func() { s.makePart(dc, c, change) })
	}
	return parts
}

func (s *scene) makePart(dc *dorisv1.DorisCluster, c doris.Component, change []func(*appsv1.StatefulSet)) {
	s.Helper()
	for _, service := range c.Services {
		s.makeLegacy(dc, service)
	}
	set := c.StatefulSet
	set.Spec.Replicas = &c.FullReplicas
	set.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{
		Type:          appsv1.RollingUpdateStatefulSetStrategyType,
		RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32(0))},
	}
	for _, do := range change {
		do(set)
	}
	s.makeLegacy(dc, set)
}

// together makes clusters beside each other, component by component.
func together(scenes []*scene, parts [][]func()) {
	for i := 0; slices.ContainsFunc(parts, func(p []func()) bool { return i < len(p) }); i++ {
		for _, p := range parts {
			if i < len(p) {
				p[i]()
			}
		}
		for _, s := range scenes {
			s.serves()
		}
	}
}

// makeLegacy creates an object as the existing operator does.
func (s *scene) makeLegacy(dc *dorisv1.DorisCluster, o client.Object) {
	s.Helper()
	annotations := maps.Clone(o.GetAnnotations())
	maps.DeleteFunc(annotations, func(k, _ string) bool { return strings.HasPrefix(k, meta.Prefix) })
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations["app.doris.components/hash"] = "1134323285"
	o.SetAnnotations(annotations)
	o.SetNamespace(s.namespace)
	o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: dorisv1.GroupVersion.String(), Kind: dorisv1.Kind, Name: dc.Name, UID: dc.UID}})
	if err := s.client.Create(s.Context(), o, client.FieldOwner(legacyManager)); err != nil {
		s.Fatalf("legacy %T %s: %v", o, o.GetName(), err)
	}
}

// serves waits until every set has all its Pods, and they are ready.
func (s *scene) serves() {
	s.Helper()
	s.eventually("all Pods serve", func() string {
		for _, o := range s.list(&appsv1.StatefulSetList{}) {
			set := o.(*appsv1.StatefulSet)
			if set.Status.ObservedGeneration != set.Generation || set.Status.ReadyReplicas != *set.Spec.Replicas {
				return fmt.Sprintf("%s has %d ready of %d", set.Name, set.Status.ReadyReplicas, *set.Spec.Replicas)
			}
		}
		return ""
	})
}

// workloads are the templates, claim templates and numbers of replicas of all
// sets, word for word.
func (s *scene) workloads() map[string]string {
	s.Helper()
	out := map[string]string{}
	for _, o := range s.list(&appsv1.StatefulSetList{}) {
		set := o.(*appsv1.StatefulSet)
		out[set.Name] = jsonOf(s.T, []any{set.Spec.Template, set.Spec.VolumeClaimTemplates, set.Spec.Replicas})
	}
	return out
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// present is the planner of this build.
func (s *scene) present() *doris.System { return doris.New(diff.New(s.client.Scheme())) }

// plannedBy plans for a cluster as it is now.
func (s *scene) plannedBy(system *doris.System, name string) plan.Plan {
	s.Helper()
	dc := s.doris(name)
	dc.SetGroupVersionKind(dorisv1.GroupVersionKind())
	world, err := system.Observe(s.Context(), observe.Direct{Client: s.client, Owners: doris.OwnerOf, Owner: client.ObjectKeyFromObject(dc)}, dc)
	if err != nil {
		s.Fatal(err)
	}
	p, err := system.Plan(dc, world, time.Now())
	if err != nil {
		s.Fatal(err)
	}
	return p
}

// digest is the digest of the one held set of a cause that concerns an object.
func (s *scene) digest(p plan.Plan, object string, cause plan.Cause) string {
	s.Helper()
	digests := s.digests(p, object, cause)
	if len(digests) != 1 {
		s.Fatalf("%d held sets of cause %s concern %s:\n%s", len(digests), cause, object, printed(p))
	}
	return digests[0]
}

func (s *scene) digests(p plan.Plan, object string, cause plan.Cause) []string {
	var out []string
	for _, set := range p.HeldSets() {
		if slices.ContainsFunc(set.Changes, func(c plan.Change) bool { return c.Object.String() == object && c.Cause == cause }) {
			out = append(out, set.Approve)
		}
	}
	return out
}

// printed is a plan for the message of a failing test.
func printed(p plan.Plan) string {
	var b strings.Builder
	for _, c := range p.Changes {
		fmt.Fprintf(&b, "  %s %s %s: %.80s → %.80s, cause %s, effect %s, %s (%s) %s\n", c.Verdict, c.Object, c.Path, c.From, c.To, c.Cause, c.Effect, c.Reason, c.Message, c.Approve)
	}
	for _, f := range p.Findings {
		fmt.Fprintf(&b, "  %s %s\n", f.Severity, f)
	}
	return b.String()
}

// annotate sets an annotation of the cluster as a person would; an empty value
// takes it away.
func (s *scene) annotate(name, key, value string) {
	s.Helper()
	s.edit(name, func(dc *dorisv1.DorisCluster) {
		if dc.Annotations == nil {
			dc.Annotations = map[string]string{}
		}
		dc.Annotations[key] = value
		if value == "" {
			delete(dc.Annotations, key)
		}
	})
}

// approve consents to sets of changes.
func (s *scene) approve(name string, digests ...string) {
	s.Helper()
	s.annotate(name, meta.AnnotationApprove, strings.Join(digests, ","))
}

// changeAs changes an object by an update of the manager.
func changeAs[T client.Object](s *scene, manager, name string, obj T, do func(T)) {
	s.Helper()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		s.get(name, obj)
		do(obj)
		return s.client.Update(s.Context(), obj, client.FieldOwner(manager))
	})
	if err != nil {
		s.Fatal(err)
	}
}

// scaleAs sets the number of replicas of a set by its scale subresource.
func (s *scene) scaleAs(manager, name string, replicas int32) {
	s.Helper()
	set := &appsv1.StatefulSet{}
	set.Namespace, set.Name = s.namespace, name
	patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)
	if err := s.client.SubResource("scale").Patch(s.Context(), set, client.RawPatch("application/merge-patch+json", []byte(patch)), client.FieldOwner(manager)); err != nil {
		s.Fatal(err)
	}
}

func (s *scene) set(name string) *appsv1.StatefulSet {
	s.Helper()
	set := &appsv1.StatefulSet{}
	s.get(name, set)
	return set
}

// takenOver waits until a cluster was taken over and is settled.
func (s *scene) takenOver(name string) {
	s.Helper()
	s.taken(name)
	s.settled(name)
}

// taken waits until all sets of a cluster carry what they were rendered by.
func (s *scene) taken(name string) {
	s.Helper()
	s.eventually(name+" is taken over", func() string {
		for _, o := range s.list(&appsv1.StatefulSetList{}) {
			if strings.HasPrefix(o.GetName(), name+"-") && o.GetAnnotations()[meta.AnnotationRevision] == "" {
				return o.GetName() + " is not"
			}
		}
		return ""
	})
}

// writes counts what the operator wrote in the namespace of the story.
func (s *scene) writes(mark audit.Mark) int {
	s.Helper()
	tally, err := s.requests().Since(mark, s.namespace)
	if err != nil {
		s.Fatal(err)
	}
	return tally.Writes()
}
