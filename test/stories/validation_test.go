package stories

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/diff"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/system/doris"
	"github.com/fairlead-dev/fairlead/test/story"
)

// sound is a spec in which nothing is wrong, and which has a little of
// everything.
func sound(name, namespace string) *dorisv1.DorisCluster {
	text := strings.ReplaceAll(three, "replicas: 3", "replicas: 1")
	dc := &dorisv1.DorisCluster{}
	if err := yaml.Unmarshal([]byte(text), dc); err != nil {
		panic(err)
	}
	dc.Name, dc.Namespace = name, namespace
	return dc
}

// verdict is what the API server says of the objects of one spec.
type verdict struct {
	objects []client.Object // refused
	errs    []error
}

// rendered renders the objects of a spec as they would be applied.
func (s *scene) rendered(dc *dorisv1.DorisCluster) (doris.Objects, []plan.Finding) {
	s.Helper()
	owned := dc.DeepCopy()
	owned.UID = "00000000-0000-0000-0000-000000000000" // an owner without one is refused
	return doris.Desired(owned, doris.Inputs{
		Revision: doris.LatestRevision, Bootstrapped: true, ConfigMaps: map[string]*corev1.ConfigMap{"fe-conf": {}},
	})
}

// judge asks the API server about every object that a spec leads to, and about
// the claims that the StatefulSet controller would make. Nothing is written.
func (s *scene) judge(dc *dorisv1.DorisCluster) verdict {
	s.Helper()
	var v verdict
	refuse := func(o client.Object, err error) {
		if err != nil {
			v.objects, v.errs = append(v.objects, o), append(v.errs, err)
		}
	}
	objects, _ := s.rendered(dc)
	engine := diff.New(s.client.Scheme())
	for _, c := range objects.Components {
		set := c.StatefulSet
		set.Spec.Replicas = &c.Replicas
		made := []client.Object{set}
		for _, service := range c.Services { // brokers have one, all others two
			made = append(made, service)
		}
		for _, o := range made {
			intent, err := engine.Intent(o)
			if err != nil {
				s.Fatal(err)
			}
			refuse(o, s.client.Apply(s.Context(), client.ApplyConfigurationFromUnstructured(intent), client.FieldOwner(doris.FieldManager), client.ForceOwnership, client.DryRunAll))
		}
		for i := range set.Spec.VolumeClaimTemplates {
			claim := set.Spec.VolumeClaimTemplates[i].DeepCopy()
			claim.Namespace, claim.Name = dc.Namespace, claim.Name+"-"+set.Name+"-0"
			refuse(claim, s.client.Create(s.Context(), claim, client.DryRunAll))
		}
	}
	return v
}

func refusals(findings []plan.Finding) []plan.Finding {
	return plan.Plan{Findings: findings}.Refused()
}

// TestEveryMistakeIsRefusedByItsField makes one mistake after another. Each is
// refused by a field of the DorisCluster, whatever the API server would say; what
// the API server says in fields of its own is translated to the same field; and
// the cluster that holds the mistake stays writable for its status and metadata.
func TestEveryMistakeIsRefusedByItsField(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	if v := s.judge(sound("sound", s.namespace)); len(v.errs) > 0 {
		t.Fatalf("the spec that the mistakes are made in is refused: %v", v.errs)
	}
	var count struct{ cases, schema, server, claims, translated int }
	var taken []string // by the API server
	for i, m := range mistakes() {
		count.cases++
		dc := sound(fmt.Sprintf("m%d", i), s.namespace)
		m.make(dc)
		_, findings := s.rendered(dc)
		refused := refusals(findings)
		if len(refused) != 1 || refused[0].Field != m.field {
			t.Errorf("%s: refused are %v, want one: %s", m.name, refused, m.field)
		}
		for _, f := range refused {
			if strings.Contains(f.String(), "template") || strings.Contains(f.String(), "containers[") || !strings.Contains(f.Message, ": ") {
				t.Errorf("%s: %q speaks of a StatefulSet, or names no way out", m.name, f)
			}
		}
		v := s.judge(dc)
		translated, claims := s.translates(m, dc, v)
		count.translated += translated
		if len(v.errs) > 0 {
			count.server++
		} else {
			taken = append(taken, m.name)
		}
		if claims > 0 && translated == 0 {
			count.claims++
		}
		if !s.staysWritable(m, dc) {
			count.schema++
		}
	}
	t.Logf("%d mistakes: all refused by their field, %d by the API server as well (%d of them only as claims), %d already by the schema of the DorisCluster; %d answers of the API server were translated",
		count.cases, count.server, count.claims, count.schema, count.translated)
	t.Logf("the API server takes %d, of which nothing good would come: %s", len(taken), strings.Join(taken, "; "))
	// Kubernetes 1.29 does not look into the Pod template of a StatefulSet: it refuses a quarter.
	if count.cases < 60 || count.server < count.cases/5 {
		t.Errorf("%d mistakes, of which the API server refuses %d: too few to mean anything", count.cases, count.server)
	}
}

// translates holds that what the API server says of a mistake is translated to
// the field that is named for it. Of claims it says so to the StatefulSet
// controller, and not to us.
func (s *scene) translates(m mistake, dc *dorisv1.DorisCluster, v verdict) (translated, claims int) {
	s.Helper()
	for i, err := range v.errs {
		if _, claim := v.objects[i].(*corev1.PersistentVolumeClaim); claim {
			claims++
			continue
		}
		translated++
		got := doris.TranslateRefusal(dc, v.objects[i], err)
		if !slices.ContainsFunc(got, func(f plan.Finding) bool { return related(f.Field, m.field) }) {
			s.Errorf("%s: %v\nis translated to %v, want %s", m.name, err, got, m.field)
		}
	}
	return translated, claims
}

// related tells whether one field is the other, or lies in it, or beside it: a
// rule that compares two fields may name either.
func related(a, b string) bool {
	if strings.HasPrefix(a, b) || strings.HasPrefix(b, a) {
		return true
	}
	parent := func(f string) string {
		f = index.ReplaceAllString(f, "")
		return f[:max(strings.LastIndexByte(f, '.'), 0)]
	}
	return strings.Count(a, ".") > 1 && parent(a) == parent(b)
}

var index = regexp.MustCompile(`\[[^]]*\]`)

// staysWritable stores a cluster with a mistake in it and holds that its labels
// and its status can be written. It tells whether it could be stored at all.
func (s *scene) staysWritable(m mistake, dc *dorisv1.DorisCluster) bool {
	s.Helper()
	if err := s.client.Create(s.Context(), dc); err != nil {
		if !strings.Contains(err.Error(), "spec.") && !strings.Contains(err.Error(), "metadata.") {
			s.Errorf("%s: the schema refuses it and names no field: %v", m.name, err)
		}
		return false
	}
	dc.Labels = map[string]string{"team": "shop"}
	if err := s.client.Update(s.Context(), dc); err != nil {
		s.Errorf("%s: its labels cannot be written: %v", m.name, err)
	}
	dc.Status.ObservedGeneration = dc.Generation
	dc.Status.Conditions = []metav1.Condition{{Type: meta.ConditionStalled, Status: metav1.ConditionTrue, Reason: meta.ReasonInvalidSpec, LastTransitionTime: metav1.Now()}}
	if err := s.client.Status().Update(s.Context(), dc); err != nil {
		s.Errorf("%s: its status cannot be written: %v", m.name, err)
	}
	return true
}

// TestKnownManifestsAreNotRefused holds the manifests that people write for the
// existing operator against the rules, and against the API server.
func TestKnownManifestsAreNotRefused(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	known, err := filepath.Glob(root + "../shared/compat/doris/examples/doriscluster-sample*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	own, err := filepath.Glob("testdata/samples/*.yaml")
	if err != nil || len(own) == 0 {
		t.Fatalf("no samples: %v", err)
	}
	seen := 0
	for _, file := range append(own, known...) {
		for _, u := range story.Documents(readFile(t, file)) {
			if u.GetKind() != dorisv1.Kind {
				continue
			}
			text, err := yaml.Marshal(u.Object)
			if err != nil {
				t.Fatal(err)
			}
			dc := &dorisv1.DorisCluster{}
			if err := yaml.UnmarshalStrict(text, dc); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			dc.Namespace = s.namespace
			seen++
			if refused := refusals(doris.Validate(dc)); len(refused) > 0 {
				t.Errorf("%s: refused: %v", file, refused)
			}
			if v := s.judge(dc); len(v.errs) > 0 {
				t.Errorf("%s: the API server refuses: %v", file, v.errs)
			}
		}
	}
	t.Logf("%d manifests, %d of them for the existing operator", seen, len(known))
}

// TestAnInvalidEditChangesNothing edits a cluster that runs into one that cannot
// be, and mends the edit.
func TestAnInvalidEditChangesNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.operate()
	s.create(strings.ReplaceAll(three, "replicas: 3", "replicas: 1")) // on claims: nothing is held
	s.settled("doris")
	pods, sets := s.identities(), s.templates()
	s.edit("doris", func(dc *dorisv1.DorisCluster) {
		dc.Spec.BeSpec.Image = "apache/doris:be-3.0.5" // good, and not carried out either
		dc.Spec.BeSpec.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: "Equals", Value: "doris"}}
	})
	s.says("doris", meta.ConditionStalled, metav1.ConditionTrue, "InvalidSpec", "spec.beSpec.tolerations[0].operator", `"Equals" is no operator: use Equal or Exists`)
	s.says("doris", meta.ConditionAvailable, metav1.ConditionTrue)
	mark := s.mark()
	s.stays("nothing changes", 3*time.Second, func() string {
		if got := s.identities(); !maps.Equal(got, pods) {
			return fmt.Sprintf("Pods were %v and are %v", pods, got)
		}
		if got := s.templates(); !maps.Equal(got, sets) {
			return fmt.Sprintf("StatefulSets were %v and are %v", sets, got)
		}
		return ""
	})
	tally, err := s.requests().Since(mark, s.namespace)
	if err != nil {
		t.Fatal(err)
	}
	if tally.Writes() > 0 {
		t.Errorf("the operator writes while it waits for a person:\n%s", tally)
	}
	s.edit("doris", func(dc *dorisv1.DorisCluster) { dc.Spec.BeSpec.Tolerations[0].Operator = corev1.TolerationOpEqual })
	dc := s.settled("doris")
	if got := story.ConditionText(dc, meta.ConditionStalled); !strings.HasPrefix(got, "no condition") {
		t.Errorf("mended, and still: %s", got)
	}
	set := &appsv1.StatefulSet{}
	s.get("doris-be", set)
	if spec := set.Spec.Template.Spec; spec.Containers[0].Image != "apache/doris:be-3.0.5" || len(spec.Tolerations) != 1 {
		t.Errorf("mended, and not carried out: image %s, tolerations %v", spec.Containers[0].Image, spec.Tolerations)
	}
	after := s.identities()
	if after["doris-be-0"] == pods["doris-be-0"] || after["doris-fe-0"] != pods["doris-fe-0"] {
		t.Errorf("Pods were %v and are %v: the backend alone should be another", pods, after)
	}
}

// templates are the generations of all StatefulSets.
func (s *scene) templates() map[string]string {
	s.Helper()
	out := map[string]string{}
	for _, o := range s.list(&appsv1.StatefulSetList{}) {
		out[o.GetName()] = fmt.Sprint(o.GetGeneration())
	}
	return out
}
