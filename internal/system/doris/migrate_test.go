package doris

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/system/doris/runtimeconfig"
)

// migration is what the plugin would find.
func (w *world) migration() Migration {
	w.Helper()
	p, observed := w.plan(w.store.Now())
	return MigrationOf(w.dc, observed, p)
}

// withConf gives the backends of a manifest a file.
func backendConf(manifest, conf string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: be-conf}\ndata:\n  be.conf: |\n    " + strings.ReplaceAll(conf, "\n", "\n    ") + "\n---\n" +
		strings.Replace(manifest, "beSpec: {", "beSpec: {configMapInfo: {configMapName: be-conf}, ", 1)
}

// TestMigrationOf holds where settings would be copied to, and that what was approved of it
// is what the operator takes.
func TestMigrationOf(t *testing.T) {
	t.Parallel()
	for name, from := range ran {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := from(t)
			m := w.migration()
			if len(m.Findings) > 0 || !m.Open() || len(m.Components) != 2 {
				t.Fatalf("%d components, findings %v", len(m.Components), m.Findings)
			}
			for i, want := range []struct{ file, volume string }{{frontendHome + "/conf/fe_custom.conf", "meta"}, {backendHome + "/conf/be_custom.conf", "data"}} {
				if c := m.Components[i]; c.File != want.file || c.Record.Volume != want.volume || len(c.Pods) != i+1 || c.Kept {
					t.Errorf("%s: file %s, record %+v, %d Pods", c.Kind, c.File, c.Record, len(c.Pods))
				}
			}
			if diff := cmp.Diff(w.approvalNow(), m.Approves(w.dc, "0123456789abcdef")); diff != "" {
				t.Errorf("approval (-want +got):\n%s", diff)
			}
			w.approves(m.Approves(w.dc, "0123456789abcdef"))
			w.settle()
			if m := w.migration(); m.Open() || len(m.Findings) > 0 || m.Components[1].Record.Migrated != "0123456789abcdef:2" {
				t.Errorf("afterwards: %+v", m)
			}
		})
	}
}

// TestMigrationBlocked holds what a migration is not begun for, with the field, the reason
// and the way out.
func TestMigrationBlocked(t *testing.T) {
	t.Parallel()
	set := func(name string, do func(*appsv1.StatefulSet)) func(*world) {
		return func(w *world) { stranger(w, name, &appsv1.StatefulSet{}, do) }
	}
	tests := map[string]struct {
		manifest             string
		do                   func(*world)
		field, reason, wants string
	}{
		"no volume": {
			manifest: withoutVolumes(threeByThree, "beSpec"), do: func(*world) {},
			field: runtimeconfig.FieldEnabled, reason: runtimeconfig.ReasonStorageUnavailable, wants: "Add a volume",
		},
		"a path of its own for settings": {
			manifest: backendConf(threeByThree, "custom_config_dir = /opt/apache-doris/be/storage/mine"), do: func(*world) {},
			field: "spec.beSpec.configMapInfo", reason: runtimeconfig.ReasonPathNotDurable, wants: "by hand",
		},
		"claims go with members": {
			do: func(w *world) {
				w.dc.Spec.BeSpec.ClaimRetention = &dorisv1.ClaimRetention{WhenScaledIn: dorisv1.RetentionDelete}
			},
			field: "spec.beSpec.claimRetention.whenScaledIn", reason: runtimeconfig.ReasonStorageUnavailable, wants: "Retain",
		},
		"being deleted": {
			do:    func(w *world) { w.dc.DeletionTimestamp = &metav1.Time{Time: testTime} },
			field: "metadata.deletionTimestamp", reason: reasonNotAtRest, wants: "nothing to migrate",
		},
		"paused": {
			do:    func(w *world) { w.annotated(meta.AnnotationPaused, "true") },
			field: `metadata.annotations["fairlead.dev/paused"]`, reason: reasonNotAtRest, wants: "resume",
		},
		"released": {
			do:    func(w *world) { w.annotated(meta.AnnotationRelease, "true") },
			field: `metadata.annotations["fairlead.dev/release"]`, reason: reasonNotAtRest, wants: "--undo",
		},
		"no policy is recorded": {
			do:    func(w *world) { w.annotated(dorisv1.AnnotationRuntimeConfigPolicy, "") },
			field: `metadata.annotations["doris.apache.org/runtime-config-policy"]`, reason: reasonNotAtRest, wants: "upgrade",
		},
		"asked for already": {
			do:    func(w *world) { w.wants(new(true)) },
			field: runtimeconfig.FieldEnabled, reason: runtimeconfig.ReasonMigrationNeeded, wants: "take the field out",
		},
		"the spec is refused": {
			do:    func(w *world) { w.edit(func(s *dorisv1.DorisClusterSpec) { s.FeSpec.Replicas = new(int32(-1)) }) },
			field: "spec.feSpec.replicas", reason: meta.ReasonInvalidSpec, wants: "",
		},
		"an edit is on its way": {
			do:    func(w *world) { w.edit(func(s *dorisv1.DorisClusterSpec) { s.BeSpec.Image = "apache/doris:be-3.0.6" }) },
			field: "StatefulSet/doris-", reason: reasonNotAtRest, wants: "kubectl fairlead plan",
		},
		"a set is gone": {
			do:    func(w *world) { w.remove("doris-be") },
			field: "StatefulSet of be", reason: reasonMemberMissing, wants: "wait",
		},
		"a Pod is missing": {
			do:    func(w *world) { p := w.pods()[1]; w.must(w.store.Delete(keyOf(&p), p.UID, false)) },
			field: "StatefulSet doris-be", reason: reasonMemberMissing, wants: "has 2 Pods and 3 replicas",
		},
		"a Pod is somebody else's": {
			do: func(w *world) {
				stranger(w, "doris-be-1", &corev1.Pod{}, func(p *corev1.Pod) { p.OwnerReferences = nil })
			},
			field: "StatefulSet doris-be", reason: reasonMemberMissing, wants: "has 2 Pods and 3 replicas",
		},
		"a Pod does not serve": {
			do: func(w *world) {
				p := object(w, "doris-be-2", &corev1.Pod{}).DeepCopy()
				p.Status.Conditions = nil
				w.must(w.store.SetStatus(p))
			},
			field: "StatefulSet doris-be", reason: reasonNotAtRest, wants: "doris-be-2 is not ready",
		},
		"its controller has not seen a set": {
			do:    set("doris-be", func(s *appsv1.StatefulSet) { s.Spec.Template.Labels["x"] = "y" }),
			field: "StatefulSet doris-be", reason: reasonNotAtRest, wants: "wait a moment",
		},
		"Pods are behind": {
			do: func(w *world) {
				set("doris-be", func(s *appsv1.StatefulSet) { s.Spec.Template.Labels["x"] = "y" })(w)
				w.controllers()
			},
			field: "StatefulSet doris-be", reason: reasonNotAtRest, wants: "newest template",
		},
		"a roll is under way": {
			do: set("doris-be", func(s *appsv1.StatefulSet) {
				s.Annotations[meta.AnnotationLastGood] = encoded(lastGood{Accepted: accepted{Version: 1}})
			}),
			field: "StatefulSet doris-be", reason: reasonNotAtRest, wants: "roll",
		},
		"a roll has stopped": {
			do: set("doris-be", func(s *appsv1.StatefulSet) {
				s.Annotations[meta.AnnotationFailed] = encoded(failedChange{Inputs: "x", Template: "y"})
			}),
			field: "StatefulSet doris-be", reason: reasonNotAtRest, wants: "mend",
		},
		"a Pod mounts another volume": {
			do: func(w *world) {
				stranger(w, "doris-be-1", &corev1.Pod{}, func(p *corev1.Pod) {
					for i := range p.Spec.Containers[0].VolumeMounts {
						if m := &p.Spec.Containers[0].VolumeMounts[i]; m.Name == "data" {
							m.SubPath = "elsewhere"
						}
					}
				})
			},
			field: "Pod doris-be-1", reason: runtimeconfig.ReasonStorageUnavailable, wants: "by hand",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			manifest := test.manifest
			if manifest == "" {
				manifest = threeByThree
			}
			w := legacy(t, manifest, nil)
			w.settle()
			test.do(w)
			var said []plan.Finding
			for _, f := range w.migration().Findings {
				said = append(said, f)
				if strings.HasPrefix(f.Field, test.field) && f.Reason == test.reason && strings.Contains(f.Message, test.wants) {
					return
				}
			}
			t.Errorf("findings %v; want one of %s, %s, that says %q", said, test.field, test.reason, test.wants)
		})
	}
}

// TestMigrationSettings says how settings of a node stand to the ConfigMap.
func TestMigrationSettings(t *testing.T) {
	t.Parallel()
	w := legacy(t, backendConf(threeByThree, "a = 1\nb = 2\n"), nil)
	w.settle()
	m := w.migration()
	got := m.Components[1].Settings([]byte("#a date\na = 1\nb=3\nc = x\\\n y\nc = 4\n"))
	want := map[string]string{"a": SettingRepeats, "b": SettingContradicts, "c": SettingAlone}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
