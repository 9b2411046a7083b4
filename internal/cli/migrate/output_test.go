package migrate

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/cli/kube"
	cliplan "github.com/fairlead-dev/fairlead/internal/cli/plan"
	"github.com/fairlead-dev/fairlead/internal/cli/screen"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/system/doris"
	"github.com/fairlead-dev/fairlead/internal/system/doris/runtimeconfig"
)

var update = flag.Bool("update", false, "write the golden files")

// heldFiles is a test double of Pods: files by Pod and name.
type heldFiles map[string]string

func (h heldFiles) Run(_ context.Context, pod, _ string, command []string, _ []byte) ([]byte, error) {
	if command[3] == "copy" {
		return []byte("ok"), nil // nothing is on a volume yet
	}
	text, there := h[pod+command[len(command)-1]]
	if !there {
		return nil, &kube.ExitError{Code: notThere}
	}
	return []byte(text), nil
}

const value = "917331"

// told is a cluster with two frontends, of which one keeps its settings already, and a
// backend, and a backup of it.
func told(out *bytes.Buffer, output string) (*run, *backup) {
	ready := corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	pod := func(name string, mounts ...corev1.VolumeMount) corev1.Pod {
		kind := strings.Split(name, "-")[1]
		return corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-of-pod"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: kind, VolumeMounts: mounts}}}, Status: ready,
		}
	}
	kept := corev1.VolumeMount{Name: "meta", MountPath: runtimeconfig.Directory, SubPathExpr: runtimeconfig.OnVolume + "/$(POD_NAME)"}
	dc := &dorisv1.DorisCluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: "analytics", Name: "doris", UID: "uid-of-cluster", Annotations: map[string]string{dorisv1.AnnotationRuntimeConfigPolicy: "legacy"},
	}}
	component := func(kind dorisv1.ComponentType, volume, at string, pods ...corev1.Pod) doris.MigrationComponent {
		return doris.MigrationComponent{
			Kind: kind, Pods: pods, File: "/opt/" + string(kind) + "_custom.conf",
			Record: &runtimeconfig.Record{State: runtimeconfig.Kept, Volume: volume, MountPath: at},
		}
	}
	files := heldFiles{
		"doris-fe-0/var/lib/doris/runtime-config/fe_custom.conf": "#Mon\nqe_slow_log_ms=" + value,
		"doris-fe-1/opt/fe_custom.conf":                          "#Mon\nqe_slow_log_ms=" + value + "\n",
		"doris-be-1/opt/be_custom.conf":                          "streaming_load_max_mb = 1\n",
	}
	r := &run{
		options: &options{IOStreams: genericiooptions.IOStreams{Out: out}, dir: "./backup", output: output}, shell: files,
		out: screen.New(out, func(string) string { return "" }),
		seen: &seen{
			subject: &cliplan.Subject{Cluster: dc},
			migration: doris.Migration{Components: []doris.MigrationComponent{
				component("fe", "meta", "/opt/meta", pod("doris-fe-0", kept), pod("doris-fe-1")),
				component("be", "data", "/opt/data", pod("doris-be-0"), pod("doris-be-1")),
			}},
		},
	}
	r.result.Findings = []plan.Finding{{Severity: plan.Refusal, Field: "spec.feSpec.replicas", Reason: "InvalidSpec", Message: "at least 1"}}
	b := &backup{manifest: manifest{ID: "0123456789abcdef", Taken: time.Date(2026, 5, 6, 12, 0, 0, 0, time.UTC), UID: "uid-of-cluster"}, files: map[string][]byte{
		"doris-fe-1": []byte(files["doris-fe-1/opt/fe_custom.conf"]), "doris-be-1": []byte("streaming_load_max_mb = 2\n"),
	}}
	for _, name := range []string{"doris-fe-1", "doris-be-0", "doris-be-1"} {
		s := savedMember{Component: strings.Split(name, "-")[1], Pod: name, UID: "uid-of-pod"}
		if text, has := b.files[name]; has {
			s.File, s.Digest = name, digest(text)
		}
		b.Members = append(b.Members, s)
	}
	return r, b
}

// TestWhatProgramsRead holds the shape of what review and status print for programs, and
// that no value is in it.
func TestWhatProgramsRead(t *testing.T) {
	for _, tc := range []struct {
		golden, output string
		of             func(*run, *backup) any
	}{
		{"review.json", "json", func(r *run, b *backup) any {
			v := r.reviewedOf(b)
			v.Blocked = append(v.Blocked, plan.Finding{Severity: plan.Refusal, Field: "Pod doris-be-0", Reason: reasonOfTest, Message: "it is another one"})
			return v
		}},
		{"review-kept.yaml", "yaml", func(r *run, _ *backup) any {
			for i := range r.migration.Components {
				r.migration.Components[i].Kept = true
			}
			return r.reviewedOf(nil)
		}},
		{"status.json", "json", func(r *run, b *backup) any { return r.stood(t.Context(), b) }},
		{"status-without.yaml", "yaml", func(r *run, _ *backup) any { return r.stood(t.Context(), nil) }},
		{"review.txt", "", func(r *run, b *backup) any { r.printReviewed(b, r.reviewedOf(b)); return nil }},
	} {
		t.Run(tc.golden, func(t *testing.T) {
			var out bytes.Buffer
			r, b := told(&out, tc.output)
			v := tc.of(r, b)
			if _, err := cliplan.Encode(&out, tc.output, v); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(out.String(), value) {
				t.Errorf("a value is printed:\n%s", &out)
			}
			file := filepath.Join("testdata", tc.golden)
			if *update {
				if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

const reasonOfTest = "RuntimeConfigMigrationOutdated"
