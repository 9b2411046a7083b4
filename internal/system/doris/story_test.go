package doris

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
)

// TestGoldenStories writes down every plan of some lives of a cluster, and the
// status at the end of each chapter. The files are for reviewers: what an edit
// of the planner changes for users is their diff.
func TestGoldenStories(t *testing.T) {
	t.Parallel()
	stories := map[string]func(*story){
		"create": func(s *story) {
			s.live("a cluster of three by three is created")
		},
		"upgrade": func(s *story) {
			s.settle()
			s.w.edit(func(d *dorisv1.DorisClusterSpec) {
				d.FeSpec.Image, d.BeSpec.Image = "apache/doris:fe-2", "apache/doris:be-2"
			})
			s.live("both images are edited")
		},
		"bad-image": func(s *story) {
			s.settle()
			s.w.edit(func(d *dorisv1.DorisClusterSpec) { d.BeSpec.Image = "apache/doris:bad" })
			s.live("the image of the backends cannot be pulled")
			s.w.edit(func(d *dorisv1.DorisClusterSpec) { d.BeSpec.Image = "apache/doris:be-2" })
			s.live("it is mended")
		},
		"scale": func(s *story) {
			s.w.withDatabase()
			s.w.db.replication = 2
			s.settle()
			s.w.edit(func(d *dorisv1.DorisClusterSpec) { d.BeSpec.Replicas = new(int32(4)) })
			s.live("one backend more")
			s.w.edit(func(d *dorisv1.DorisClusterSpec) { d.BeSpec.Replicas = new(int32(2)) })
			s.live("two backends less")
		},
		"strangers": func(s *story) {
			s.settle()
			stranger(s.w, "doris-fe-service", &corev1.Service{}, func(o *corev1.Service) { o.Spec.Ports = o.Spec.Ports[:3] })
			s.live("a stranger takes a port from a Service")
			stranger(s.w, "doris-be", &appsv1.StatefulSet{}, func(o *appsv1.StatefulSet) { o.Spec.Template.Spec.Containers[0].Image = "strange" })
			s.live("a stranger edits a Pod template")
		},
	}
	for name, tell := range stories {
		t.Run(name, func(t *testing.T) {
			s := &story{w: newWorld(t, threeByThree)}
			tell(s)
			golden := filepath.Join("testdata", "stories", name+".txt")
			if *update {
				if err := os.WriteFile(golden, s.text.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), s.text.String()); diff != "" {
				t.Errorf("the story goes another way (-want +got):\n%s", diff)
			}
		})
	}
}

type story struct {
	w    *world
	text bytes.Buffer
}

func (s *story) settle() { s.w.settle() }

// live goes on until nothing happens any more, and notes each plan that differs
// from the last.
func (s *story) live(chapter string) {
	fmt.Fprintf(&s.text, "# %s\n", chapter)
	last := ""
	for {
		before := s.w.store.Now().Version
		p, _ := s.w.plan(s.w.store.Now())
		if text := withoutWarnings(printPlan(p)); text != last {
			fmt.Fprintf(&s.text, "\n%s", text)
			last = text
		}
		s.w.reconcile()
		s.w.controllers()
		s.w.kubelet()
		s.w.db.goesOn()
		if s.w.db != nil {
			s.w.now = s.w.now.Add(6 * time.Second)
		}
		if s.w.store.Now().Version == before && !s.w.db.moving() {
			break
		}
	}
	shown := s.w.dc.Status.DeepCopy()
	for i := range shown.Workloads {
		shown.Workloads[i].Records = nil // they repeat what is on the sets
	}
	status, err := yaml.Marshal(shown)
	s.w.must(err)
	fmt.Fprintf(&s.text, "\nstatus:\n%s\n", status)
}

func withoutWarnings(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "Warning ") {
			b.WriteString(line)
		}
	}
	return b.String()
}
