package doris

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/system/doris/runtimeconfig"
)

// note carries out a patch of annotations of the resource itself.
func (w *world) note(dc *dorisv1.DorisCluster, p plan.Patch) error {
	if len(p.Fields) != 1 || dc.Name != w.dc.Name {
		return fmt.Errorf("%s is patched with %v", p.Target(), p.Fields)
	}
	metadata, _ := p.Fields["metadata"].(map[string]any)
	annotations, ok := metadata["annotations"].(map[string]any)
	if !ok || len(metadata) != 1 {
		return fmt.Errorf("%s is patched with %v", p.Target(), p.Fields)
	}
	for key, value := range annotations {
		text, ok := value.(string)
		if !ok {
			return fmt.Errorf("annotation %s is %v", key, value)
		}
		w.annotated(key, text)
	}
	return nil
}

func (w *world) annotated(key, value string) {
	annotations := maps.Clone(w.dc.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	if value == "" {
		delete(annotations, key)
	}
	w.dc.Annotations = annotations
}

// asks replaces what a person has written into annotations. The record of the policy is
// the operator's, and stays.
func (w *world) asks(annotations map[string]string) {
	policy := w.policy()
	w.dc.Annotations = maps.Clone(annotations)
	if policy != "" {
		w.annotated(dorisv1.AnnotationRuntimeConfigPolicy, policy)
	}
}

func (w *world) policy() string { return w.dc.Annotations[dorisv1.AnnotationRuntimeConfigPolicy] }

// wants sets what the spec says about keeping settings.
func (w *world) wants(enabled *bool) {
	w.edit(func(s *dorisv1.DorisClusterSpec) {
		s.RuntimeConfigPersistence = &dorisv1.RuntimeConfigPersistence{Enabled: enabled}
	})
}

// keptOn is where a set keeps settings, by its template and by its annotation.
func (w *world) keptOn(set string) string {
	w.Helper()
	s := object(w, set, &appsv1.StatefulSet{})
	said := s.Annotations[runtimeconfig.AnnotationStorage]
	r := runtimeconfig.Found(&s.Spec.Template.Spec, set[strings.LastIndexByte(set, '-')+1:])
	if r == nil {
		return said
	}
	if r.Annotation() != said {
		w.Errorf("%s says %s, and its template %s", set, said, r.Annotation())
	}
	return r.Volume
}

func keeping(t *testing.T, manifest string) *world {
	t.Helper()
	w := newWorld(t, manifest)
	w.wants(new(true))
	if p := w.settle(); len(p.Changes) > 0 {
		t.Fatalf("a settled cluster has changes:\n%s", printPlan(p))
	}
	return w
}

func TestSettingsAreKeptWhereItIsAskedFor(t *testing.T) {
	t.Parallel()
	w := keeping(t, smallCluster)
	for set, volume := range map[string]string{"doris-fe": "meta", "doris-be": "data"} {
		if got := w.keptOn(set); got != volume {
			t.Errorf("%s keeps them on %q, want %q", set, got, volume)
		}
	}
	if w.policy() != "enabled" {
		t.Errorf("the policy is %q", w.policy())
	}
	want := &dorisv1.RuntimeConfigStatus{Policy: "enabled", Kept: []dorisv1.ComponentType{"be", "fe"}}
	if diff := cmp.Diff(want, w.dc.Status.RuntimeConfig); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	for _, set := range []string{"doris-fe", "doris-be"} {
		pod := w.templateOf(set).Spec
		if last := pod.InitContainers[len(pod.InitContainers)-1]; last.Name != runtimeconfig.InitName {
			t.Errorf("the last init container of %s is %s", set, last.Name)
		}
	}
}

// runs is a cluster that was made before settings were kept: there is no record of any
// policy, and nothing in its sets.
func runs(t *testing.T, manifest string) *world {
	t.Helper()
	w := newWorld(t, manifest)
	w.annotated(dorisv1.AnnotationRuntimeConfigPolicy, string(runtimeconfig.Legacy))
	w.settle()
	w.annotated(dorisv1.AnnotationRuntimeConfigPolicy, "")
	for _, name := range []string{"doris-fe", "doris-be"} {
		stranger(w, name, &appsv1.StatefulSet{}, func(s *appsv1.StatefulSet) { delete(s.Annotations, dorisv1.AnnotationRuntimeConfigPolicy) })
	}
	return w
}

// TestPolicies holds what becomes of a cluster that is made under each policy: where
// each component keeps its settings, what is recorded, and that a template is that of a
// cluster which never heard of it where they are not kept.
func TestPolicies(t *testing.T) {
	t.Parallel()
	bare := withoutVolumes(smallCluster, "beSpec")
	logs := strings.Replace(smallCluster, "persistentVolumes: [{name: data,", "persistentVolumes: [{name: logs, mountPath: /opt/apache-doris/be/log, persistentVolumeClaimSpec: {resources: {requests: {storage: 1Gi}}}}, {name: data,", 1)
	tests := map[string]struct {
		manifest string
		policy   string // in the annotation beforehand
		enabled  *bool
		// recorded afterwards; fe and be are the annotations of the sets, or the volumes.
		recorded, fe, be string
	}{
		"new, nothing said: kept where a volume is":            {smallCluster, "", nil, "automatic", "meta", "data"},
		"new, nothing said, with a volume for logs: there":     {logs, "", nil, "automatic", "meta", "logs"},
		"new, nothing said, no volume: said to be unavailable": {bare, "", nil, "automatic", "meta", "unavailable"},
		"new, asked for: kept":                                 {smallCluster, "", new(true), "enabled", "meta", "data"},
		"new, asked not to: nothing":                           {smallCluster, "", new(false), "disabled", "", ""},
		"new, recorded as legacy: nothing":                     {smallCluster, "legacy", nil, "legacy", "", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, test.manifest)
			w.wants(test.enabled)
			w.annotated(dorisv1.AnnotationRuntimeConfigPolicy, test.policy)
			if p := w.settle(); len(p.Changes) > 0 {
				t.Fatalf("a settled cluster has changes:\n%s", printPlan(p))
			}
			if w.policy() != test.recorded {
				t.Errorf("the policy is %q, want %q", w.policy(), test.recorded)
			}
			never := runs(t, test.manifest)
			for set, want := range map[string]string{"doris-fe": test.fe, "doris-be": test.be} {
				if got := w.keptOn(set); got != want {
					t.Errorf("%s: %q, want %q", set, got, want)
				}
				if copied := object(w, set, &appsv1.StatefulSet{}).Annotations[dorisv1.AnnotationRuntimeConfigPolicy]; copied != test.recorded {
					t.Errorf("%s has noted the policy %q, want %q", set, copied, test.recorded)
				}
				kept := want != "" && want != string(runtimeconfig.Unavailable)
				if diff := cmp.Diff(never.templateOf(set), w.templateOf(set)); (diff == "") == kept {
					t.Errorf("the template of %s beside that of a cluster that never kept anything:\n%s", set, diff)
				}
			}
			said := condition(w.dc, ConditionRuntimeConfigKept)
			if lacks := test.be == string(runtimeconfig.Unavailable); lacks != strings.HasPrefix(said, "False "+runtimeconfig.ReasonStorageUnavailable) || !lacks && said != "" {
				t.Errorf("%s is %q", ConditionRuntimeConfigKept, said)
			}
		})
	}
}

// TestRunningClustersStayLegacy holds that a cluster which ran before is legacy for good,
// whatever happens to it, and that no template of it changes.
func TestRunningClustersStayLegacy(t *testing.T) {
	t.Parallel()
	more := map[string]func(*world){
		"nothing":                                     func(*world) {},
		"the operator is restarted":                   func(w *world) { w.system = New(testEngine) },
		"a set is deleted":                            func(w *world) { w.remove("doris-be") },
		"the record is taken away":                    func(w *world) { w.annotated(dorisv1.AnnotationRuntimeConfigPolicy, "") },
		"the record is written by hand: automatic":    func(w *world) { w.annotated(dorisv1.AnnotationRuntimeConfigPolicy, "automatic") },
		"the record is written by hand, set deleted":  func(w *world) { w.annotated(dorisv1.AnnotationRuntimeConfigPolicy, "automatic"); w.remove("doris-be") },
		"the record is written by hand, to no policy": func(w *world) { w.annotated(dorisv1.AnnotationRuntimeConfigPolicy, "auto") },
	}
	for name, do := range more {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := runs(t, smallCluster)
			before := map[string]corev1.PodTemplateSpec{"doris-fe": w.templateOf("doris-fe"), "doris-be": w.templateOf("doris-be")}
			w.settle()
			if w.policy() != "legacy" {
				t.Fatalf("the policy is %q", w.policy())
			}
			do(w)
			if p := w.settle(); len(p.Changes) > 0 {
				t.Fatalf("changes:\n%s", printPlan(p))
			}
			for set, was := range before {
				if got := w.keptOn(set); got != "" {
					t.Errorf("%s keeps them: %q", set, got)
				}
				if diff := cmp.Diff(was, w.templateOf(set)); diff != "" {
					t.Errorf("the template of %s (-before +after):\n%s", set, diff)
				}
			}
		})
	}
}

// TestWhatHadNoVolumeGetsNoneLater holds that storage which is added later moves nothing.
func TestWhatHadNoVolumeGetsNoneLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withoutVolumes(smallCluster, "beSpec"))
	w.settle()
	w.edit(func(s *dorisv1.DorisClusterSpec) {
		s.BeSpec.PersistentVolumes = []dorisv1.PersistentVolume{{Name: "logs", MountPath: backendHome + "/log", PersistentVolumeClaimSpec: corev1.PersistentVolumeClaimSpec{
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		}}}
	})
	w.settle()
	if got := w.keptOn("doris-be"); got != string(runtimeconfig.Unavailable) {
		t.Errorf("the backends keep them: %q", got)
	}
	if said := condition(w.dc, ConditionRuntimeConfigKept); !strings.HasPrefix(said, "False "+runtimeconfig.ReasonStorageUnavailable) {
		t.Errorf("%s is %q", ConditionRuntimeConfigKept, said)
	}
}

// TestWhatIsKeptStaysAsItIs holds that no event of the life of a cluster changes
// where settings are kept.
func TestWhatIsKeptStaysAsItIs(t *testing.T) {
	t.Parallel()
	events := map[string]struct {
		do func(*world)
		// policy afterwards.
		policy string
		// moves tells that the templates change for other reasons.
		moves bool
	}{
		"the operator is restarted": {func(w *world) { w.system = New(testEngine) }, "enabled", false},
		"the set of the backends is deleted": {func(w *world) {
			w.remove("doris-be")
		}, "enabled", false},
		"all sets are deleted": {func(w *world) {
			w.remove("doris-be")
			w.remove("doris-fe")
		}, "enabled", false},
		"the field is taken out of the spec": {func(w *world) { w.wants(nil) }, "enabled", false},
		"the policy is taken away": {func(w *world) {
			w.wants(nil)
			w.annotated(dorisv1.AnnotationRuntimeConfigPolicy, "")
		}, "legacy", false},
		"the policy is taken away and asked for": {func(w *world) {
			w.annotated(dorisv1.AnnotationRuntimeConfigPolicy, "")
		}, "enabled", false},
		"the records are taken away, and those in the status": {func(w *world) {
			stranger(w, "doris-be", &appsv1.StatefulSet{}, func(s *appsv1.StatefulSet) {
				delete(s.Annotations, meta.AnnotationAccepted)
				delete(s.Annotations, runtimeconfig.AnnotationStorage)
			})
			for i := range w.dc.Status.Workloads {
				w.dc.Status.Workloads[i].Records = nil
			}
		}, "enabled", true},
		"the annotation on the set is edited": {func(w *world) {
			stranger(w, "doris-be", &appsv1.StatefulSet{}, func(s *appsv1.StatefulSet) { s.Annotations[runtimeconfig.AnnotationStorage] = "unavailable" })
		}, "enabled", false},
		"another image": {func(w *world) {
			w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-2" })
		}, "enabled", true},
		"more backends": {func(w *world) { w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Replicas = new(int32(3)) }) }, "enabled", false},
	}
	for name, event := range events {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := keeping(t, smallCluster)
			before := map[string]corev1.PodTemplateSpec{"doris-fe": w.templateOf("doris-fe"), "doris-be": w.templateOf("doris-be")}
			event.do(w)
			if p := w.settle(); len(p.Changes) > 0 {
				t.Fatalf("changes:\n%s", printPlan(p))
			}
			for set, volume := range map[string]string{"doris-fe": "meta", "doris-be": "data"} {
				if got := w.keptOn(set); got != volume {
					t.Errorf("%s keeps them on %q, want %q", set, got, volume)
				}
				if diff := cmp.Diff(before[set], w.templateOf(set)); diff != "" && !event.moves {
					t.Errorf("the template of %s (-before +after):\n%s", set, diff)
				}
			}
			if w.policy() != event.policy {
				t.Errorf("the policy is %q, want %q", w.policy(), event.policy)
			}
		})
	}
}

// TestRuntimeRefusals holds that what is refused moves nothing, and that mending it
// ends it.
func TestRuntimeRefusals(t *testing.T) {
	t.Parallel()
	emptyDirs := withoutVolumes(smallCluster, "beSpec")
	tests := map[string]struct {
		// from makes the world in which the edit is done.
		from   func(*testing.T) *world
		do     func(*world)
		reason string
	}{
		"turned off after it was kept": {
			func(t *testing.T) *world { t.Helper(); return keeping(t, smallCluster) },
			func(w *world) { w.wants(new(false)) }, runtimeconfig.ReasonNoWayBack,
		},
		"turned off, with the policy taken away": {
			func(t *testing.T) *world { t.Helper(); return keeping(t, smallCluster) },
			func(w *world) {
				w.wants(new(false))
				w.annotated(dorisv1.AnnotationRuntimeConfigPolicy, "")
			}, runtimeconfig.ReasonNoWayBack,
		},
		"asked for on a cluster that runs": {
			func(t *testing.T) *world { t.Helper(); return runs(t, smallCluster) },
			func(w *world) { w.wants(new(true)) }, runtimeconfig.ReasonMigrationNeeded,
		},
		"asked for on a new cluster without volumes": {
			func(t *testing.T) *world { t.Helper(); return newWorld(t, emptyDirs) },
			func(w *world) { w.wants(new(true)) }, runtimeconfig.ReasonStorageUnavailable,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := test.from(t)
			before := w.store.Now().Version
			test.do(w)
			policy := w.policy()
			p := w.settle()
			if refused := p.Refused(); len(refused) == 0 || refused[0].Reason != test.reason {
				t.Fatalf("not refused for %s:\n%s", test.reason, printPlan(p))
			}
			if w.store.Now().Version != before || w.policy() != policy {
				t.Errorf("something was written, or the policy is %q", w.policy())
			}
			if stalled := condition(w.dc, meta.ConditionStalled); !strings.HasPrefix(stalled, "True "+test.reason) {
				t.Errorf("Stalled is %q", stalled)
			}
			w.wants(nil)
			if test.reason == runtimeconfig.ReasonStorageUnavailable {
				w.wants(new(false))
			}
			if p := w.settle(); len(p.Refused()) > 0 {
				t.Errorf("mended, and still:\n%s", printPlan(p))
			}
		})
	}
}

// withoutVolumes takes the volumes of a component out of a manifest.
func withoutVolumes(manifest, component string) string {
	lines := strings.Split(manifest, "\n")
	for i, line := range lines {
		if strings.Contains(line, component+":") {
			before, _, _ := strings.Cut(line, ", persistentVolumes")
			lines[i] = before + "}"
		}
	}
	return strings.Join(lines, "\n")
}

// TestRuntimePlaces reads what decides about volumes from configuration files.
func TestRuntimePlaces(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		conf                string
		logs, custom, cache string
	}{
		"nothing said":           {"", backendHome + "/log", "", ""},
		"logs by the variable":   {`LOG_DIR="${DORIS_HOME}/logs/"`, backendHome + "/logs", "", ""},
		"logs by the setting":    {"sys_log_dir = /logs", "/logs", "", ""},
		"a place for settings":   {"custom_config_dir = ${DORIS_HOME}/mine", backendHome + "/log", backendHome + "/mine", ""},
		"a file cache":           {`file_cache_path = [{"path":"/c/","total_size":1},{"path":"memory"}]`, backendHome + "/log", "", "/c"},
		"a file cache, no path":  {"enable_file_cache = true", backendHome + "/log", "", backendHome + "/file_cache"},
		"a file cache, no JSON":  {"file_cache_path = /c", backendHome + "/log", "", "/"},
		"a file cache, relative": {`file_cache_path = [{"path":"c"}]`, backendHome + "/log", "", "/"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := runtimeconfig.Component{Kind: runtimeconfig.Backend}
			spec := &dorisv1.BaseSpec{}
			spec.ConfigMapInfo.ConfigMapName = "be"
			backendPlaces(&c, newConfReader(spec, "spec.beSpec", backendConfKey, backendHome, map[string]*corev1.ConfigMap{
				"be": {Data: map[string]string{backendConfKey: test.conf}},
			}))
			if c.LogDir != test.logs || c.Custom != test.custom || strings.Join(c.Caches, " ") != test.cache || !slices.Equal(c.DataDirs, []string{backendHome + "/storage"}) {
				t.Errorf("%+v", c)
			}
		})
	}
}
