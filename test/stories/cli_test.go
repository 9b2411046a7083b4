package stories

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/cli"
	"github.com/fairlead-dev/fairlead/internal/cli/exit"
	cliplan "github.com/fairlead-dev/fairlead/internal/cli/plan"
	clistatus "github.com/fairlead-dev/fairlead/internal/cli/status"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/test/cluster/audit"
	"github.com/fairlead-dev/fairlead/test/counts"
	"github.com/fairlead-dev/fairlead/test/story"
)

// saysPlugin runs a verb and holds its exit code and parts of what it prints.
func (s *scene) saysPlugin(code int, parts []string, args ...string) string {
	s.Helper()
	out, got := s.plugged("", args...)
	if got != code {
		s.Fatalf("%v ended with %d and not with %d:\n%s", args, got, code, out)
	}
	for _, part := range parts {
		if !strings.Contains(out, part) {
			s.Errorf("%v does not say %q:\n%s", args, part, out)
		}
	}
	return out
}

// result asks for the plan of the cluster doris as it is.
func (s *scene) result() cliplan.Result {
	s.Helper()
	out, _ := s.plugged("", "plan", "dcr", "doris", "-o", "json")
	var results []cliplan.Result
	if err := json.Unmarshal([]byte(out), &results); err != nil || len(results) != 1 {
		s.Fatalf("%d plans, %v:\n%s", len(results), err, out)
	}
	return results[0]
}

func (s *scene) approvals() string {
	s.Helper()
	return s.doris("doris").Annotations[meta.AnnotationApprove]
}

// TestHeldChangesAreApprovedByDigest edits the image of backends whose data would
// be lost with their Pods: nothing moves until the digest that plan prints is
// approved, and no other digest will do.
func TestHeldChangesAreApprovedByDigest(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.operate()
	s.create(small)
	s.settled("doris")
	before := s.identities()
	const image = "apache/doris:be-3.0.5"
	edit := func(dc *dorisv1.DorisCluster) { dc.Spec.BeSpec.Image = image }
	foreseen := s.planned(edit)
	if len(foreseen.Sets) != 1 || foreseen.Sets[0].Changes[0].Effect != plan.EffectDataLoss {
		t.Fatalf("the plan of the manifest: %+v", foreseen)
	}
	s.edit("doris", edit)
	s.says("doris", meta.ConditionChangePending, metav1.ConditionTrue)

	r := s.result()
	if len(r.Sets) != 1 {
		t.Fatalf("%d sets are held: %+v", len(r.Sets), r)
	}
	digest := r.Sets[0].Approve
	if digest != foreseen.Sets[0].Approve {
		t.Errorf("the digest was %s in the plan of the manifest, and is %s", foreseen.Sets[0].Approve, digest)
	}
	approve := fmt.Sprintf("kubectl fairlead approve dcr/doris %s -n %s", digest, s.namespace)
	s.saysPlugin(exit.OK, []string{"1 set of changes held", "data-loss", image, approve}, "plan", "dcr/doris")
	s.saysPlugin(exit.OK, []string{digest, "data-loss", approve, "ChangePending"}, "status", "dcr", "doris")
	s.saysPlugin(exit.Refused, nil, "plan", "dcr", "doris", "--exit-code")

	s.saysPlugin(exit.Failed, []string{"not held", digest}, "approve", "dcr", "doris", "000000000000", "--yes")
	s.saysPlugin(exit.Failed, []string{"say which", digest}, "approve", "dcr", "doris", "--yes")
	s.saysPlugin(exit.Failed, []string{"--yes", image, "doris-be-0"}, "approve", "dcr", "doris", digest)
	if got := s.approvals(); got != "" {
		t.Fatalf("approved without anybody's consent: %q", got)
	}
	s.stays("the cluster", time.Second, func() string { return moved(before, s.identities()) })

	s.saysPlugin(exit.OK, []string{"Approved: " + digest, "status dcr/doris"}, "approve", "dcr", "doris", digest, "--yes")
	s.eventually("the backend has the image", func() string {
		for _, p := range s.pods("be") {
			if got := p.Spec.Containers[0].Image; got != image || !story.PodReady(&p) {
				return p.Name + " has " + got
			}
		}
		return ""
	})
	s.settled("doris")
	s.saysPlugin(exit.OK, []string{"Taken back"}, "approve", "dcr/doris", "--undo", "--yes")
	if got := s.approvals(); got != "" {
		t.Errorf("after --undo the consent is %q", got)
	}
	s.saysPlugin(exit.OK, []string{"no consent"}, "approve", "dcr/doris", "--undo", "--yes")
	s.saysPlugin(exit.Failed, []string{"nothing is held"}, "approve", "dcr/doris", "--all", "--yes")
	s.quiet(time.Second)
	s.saysPlugin(exit.OK, []string{"nothing to do"}, "plan", "dcr/doris", "--exit-code")
}

func moved(before, now map[string]string) string {
	for name, uid := range before {
		if now[name] != uid {
			return name + " was replaced"
		}
	}
	return ""
}

// TestPausedAndResumed holds that nothing is carried out between the two.
func TestPausedAndResumed(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.operate()
	s.create(small)
	s.settled("doris")
	s.saysPlugin(exit.OK, []string{"is paused", "--watch"}, "pause", "dcr", "doris", "--yes")
	s.saysPlugin(exit.OK, []string{"paused already"}, "pause", "dcr", "doris", "--yes")
	s.edit("doris", func(dc *dorisv1.DorisCluster) {
		dc.Spec.FeSpec.Service = &dorisv1.ExportService{Type: corev1.ServiceTypeNodePort}
	})
	s.says("doris", meta.ConditionStalled, metav1.ConditionTrue, meta.ReasonPaused)
	service := func() corev1.ServiceType {
		svc := &corev1.Service{}
		s.get("doris-fe-service", svc)
		return svc.Spec.Type
	}
	s.saysPlugin(exit.Changes, []string{"it is paused", "resume dcr/doris", "Service/doris-fe-service"}, "plan", "dcr", "doris", "--exit-code")
	s.saysPlugin(exit.OK, []string{"paused: the operator writes nothing"}, "status", "doris")
	if got := service(); got != corev1.ServiceTypeClusterIP {
		t.Errorf("while it is paused, the Service became %s", got)
	}
	s.saysPlugin(exit.Failed, []string{"--yes"}, "resume", "dcr", "doris")
	s.saysPlugin(exit.OK, []string{"Service/doris-fe-service", "is resumed"}, "resume", "dcr/doris", "--yes")
	s.eventually("the Service is changed", func() string {
		if got := service(); got != corev1.ServiceTypeNodePort {
			return "it is " + string(got)
		}
		return ""
	})
	s.settled("doris")
	s.saysPlugin(exit.OK, []string{"is not paused"}, "resume", "dcr/doris", "--yes")
}

// TestRestartReplacesOneComponent restarts the backends: all of them, no frontend,
// in the order that was printed.
func TestRestartReplacesOneComponent(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.operate()
	s.create(strings.ReplaceAll(three, "replicas: 3", "replicas: 2"))
	s.settled("doris")
	went := len(s.history.Went())
	s.saysPlugin(exit.Failed, []string{"fe"}, "restart", "dcr", "doris", "--yes")
	s.saysPlugin(exit.Failed, []string{"cn"}, "restart", "dcr", "doris", "--component", "cn", "--yes")
	out := s.saysPlugin(exit.OK, []string{"2 Pods replaced"}, "restart", "dcr", "doris", "--component", "be", "--yes")
	if first, second := strings.Index(out, "1.     doris-be-1"), strings.Index(out, "2.     doris-be-0"); first < 0 || second < first {
		t.Errorf("the order is not printed:\n%s", out)
	}
	s.eventually("the backends were replaced", func() string {
		if got := s.history.Went()[went:]; len(got) < 2 {
			return fmt.Sprintf("gone are %v", got)
		}
		return ""
	})
	s.settled("doris")
	if got := s.history.Went()[went:]; !slices.Equal(got, []string{"doris-be-1", "doris-be-0"}) {
		t.Errorf("replaced, in this order: %v", got)
	}
}

// TestReleasedAndTakenOverAgain holds that release prints what happens, that it
// does, and that neither the way there nor the way back replaces a Pod.
func TestReleasedAndTakenOverAgain(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.operate()
	s.create(small)
	s.settled("doris")
	before := s.identities()
	strategy := func(want appsv1.StatefulSetUpdateStrategyType) {
		t.Helper()
		s.eventually("the strategy is "+string(want), func() string {
			for _, name := range []string{"doris-fe", "doris-be"} {
				set := &appsv1.StatefulSet{}
				s.get(name, set)
				if got := set.Spec.UpdateStrategy.Type; got != want {
					return name + " has " + string(got)
				}
			}
			return ""
		})
	}
	s.saysPlugin(exit.Failed, []string{"--yes", "StatefulSet/doris-be", "OnDelete", "RollingUpdate"}, "release", "dcr", "doris")
	strategy(appsv1.OnDeleteStatefulSetStrategyType)
	s.saysPlugin(exit.OK, []string{"Asked for the release"}, "release", "dcr", "doris", "--yes")
	strategy(appsv1.RollingUpdateStatefulSetStrategyType)
	s.saysPlugin(exit.OK, []string{"released already"}, "release", "dcr", "doris", "--yes")
	s.saysPlugin(exit.OK, []string{"(released"}, "status", "dcr", "doris")
	s.saysPlugin(exit.OK, []string{"updateStrategy"}, "release", "dcr", "doris", "--undo", "--yes")
	strategy(appsv1.OnDeleteStatefulSetStrategyType)
	s.saysPlugin(exit.OK, []string{"not released"}, "release", "dcr", "doris", "--undo", "--yes")
	if gone := moved(before, s.identities()); gone != "" {
		t.Error(gone)
	}
}

// TestReleaseThatWouldReplacePodsIsRefused holds that Pods on an older template
// keep a cluster from being handed back.
func TestReleaseThatWouldReplacePodsIsRefused(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.operate()
	s.create(small)
	s.settled("doris")
	s.saysPlugin(exit.OK, nil, "pause", "dcr", "doris", "--yes")
	s.quiet(time.Second)
	set := &appsv1.StatefulSet{}
	change(s, "doris-be", set, func(set *appsv1.StatefulSet) { set.Spec.Template.Labels["somebody"] = "else" })
	s.eventually("the newest template is seen", func() string {
		s.get("doris-be", set)
		if set.Status.ObservedGeneration != set.Generation {
			return "it is not"
		}
		return ""
	})
	s.saysPlugin(exit.Failed, []string{"doris-be-0", "let the roll end"}, "release", "dcr", "doris", "--yes")
	s.saysPlugin(exit.OK, []string{"Pods that would change if they were lost", "doris-be-0"}, "plan", "dcr", "doris")
	if _, asked := s.doris("doris").Annotations[meta.AnnotationRelease]; asked {
		t.Error("the release was asked for")
	}
}

// write puts a manifest into a file.
func (s *scene) write(name, text string) string {
	s.Helper()
	file := filepath.Join(s.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.Fatal(err)
	}
	return file
}

// TestExitCodesOfPlan holds the documented codes, and what is said of input that
// kubectl apply would not take or that has no part in the plan.
func TestExitCodesOfPlan(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.operate()
	s.create(small)
	s.settled("doris")
	s.quiet(time.Second)
	mark := s.mark()
	edited := func(old, with string) string {
		if !strings.Contains(small, old) {
			t.Fatalf("%q is not in the manifest", old)
		}
		return s.write("doris.yaml", strings.ReplaceAll(small, old, with))
	}
	const fe, be = "feSpec: {replicas: 1", "beSpec: {replicas: 1"
	for _, tc := range []struct {
		name string
		file string
		args []string
		code int
		says []string
	}{
		{"the same manifest", edited("{name: doris}", "{name: doris}"), []string{"--exit-code"}, exit.OK, []string{"nothing to do"}},
		{"more backends", edited(be, "beSpec: {replicas: 2"), nil, exit.OK, []string{"2 changes of 2 objects", "PodDisruptionBudget"}},
		{"more backends, code asked for", edited(be, "beSpec: {replicas: 2"), []string{"--exit-code"}, exit.Changes, []string{"spec.replicas"}},
		{"a change that loses data", edited("be-2.1.8", "be-3.0.5"), nil, exit.OK, []string{"1 set of changes held"}},
		{"a change that loses data, code asked for", edited("be-2.1.8", "be-3.0.5"), []string{"--exit-code"}, exit.Refused, []string{"once it is applied: kubectl fairlead approve"}},
		{"input that is refused", edited(fe, "feSpec: {replicas: -1"), nil, exit.Refused, []string{"refused; nothing would be changed", "spec.feSpec.replicas"}},
		{"a namespace that does not exist", edited("{name: doris}", "{name: doris, namespace: nowhere-to-be-found}"), nil, exit.Failed, []string{"nowhere-to-be-found", "--namespace says"}},
		{"no such file", filepath.Join(t.TempDir(), "none.yaml"), nil, exit.Failed, []string{"no such file"}},
	} {
		s.saysPlugin(tc.code, tc.says, append([]string{"plan", "-f", tc.file}, tc.args...)...)
	}
	s.saysPlugin(exit.Failed, []string{`"nobody"`, "not found"}, "plan", "dcr", "nobody")
	s.saysPlugin(exit.Failed, []string{`"pod" is no kind`}, "plan", "pod", "doris-be-0")
	s.saysPlugin(exit.OK, []string{"nothing to do"}, "plan", "dcr")
	s.nothingWritten(mark)
}

// nothingWritten holds that the plugin has only read since the mark.
func (s *scene) nothingWritten(mark audit.Mark) {
	s.Helper()
	tally, err := counts.Client{Log: s.cluster.Audit(), Agent: pluginAgent}.Since(mark, s.namespace)
	if err != nil {
		s.Fatal(err)
	}
	s.Logf("the plugin: %s", tally.Summary())
	if tally.Writes()+tally.Events > 0 || tally.Reads == 0 {
		s.Errorf("the plugin wrote, or did not even read:\n%s", tally)
	}
}

// TestPlanForANamespaceThatDoesNotExist says so, unless the files make it.
func TestPlanForANamespaceThatDoesNotExist(t *testing.T) {
	s := newScene(t)
	manifest := strings.ReplaceAll(small, "{name: doris}", "{name: doris, namespace: nowhere-to-be-found}")
	kubeconfig := []string{"--kubeconfig", s.cluster.Kubeconfig()}
	out, code := pluggedAnywhere(s, manifest, append([]string{"plan", "-f", "-"}, kubeconfig...)...)
	if code != exit.OK || !strings.Contains(out, `namespace "nowhere-to-be-found" does not exist`) {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	with := "apiVersion: v1\nkind: Namespace\nmetadata: {name: nowhere-to-be-found}\n---\n" + manifest
	out, code = pluggedAnywhere(s, with, append([]string{"plan", "-f", "-"}, kubeconfig...)...)
	if code != exit.OK || strings.Contains(out, "does not exist:") || !strings.Contains(out, "would be made") {
		t.Errorf("with the namespace in the file, exit code %d:\n%s", code, out)
	}
}

// TestStatusForPrograms holds the form of -o json.
func TestStatusForPrograms(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.operate()
	s.create(small)
	s.settled("doris")
	var views []clistatus.View
	if err := yaml.Unmarshal([]byte(s.plugin("status", "dcr", "doris", "-o", "yaml")), &views); err != nil {
		t.Fatal(err)
	}
	if len(views) != 1 || len(views[0].Members) != 2 || len(views[0].Components) != 2 || views[0].Plan != "nothing to do" {
		t.Errorf("views: %+v", views)
	}
	s.saysPlugin(exit.OK, []string{"NAMESPACE", s.namespace, "doris", "True"}, "status")
}

// TestPlanOfALargeConfigurationIsQuick plans an edit of a cluster of three
// frontends and three backends with 500 settings, and prints the time.
func TestPlanOfALargeConfigurationIsQuick(t *testing.T) {
	s := newScene(t)
	s.operate()
	var text strings.Builder
	for _, c := range []string{"fe", "be"} {
		var conf strings.Builder
		for i := range 250 {
			fmt.Fprintf(&conf, "some_setting_of_%s_%03d = value-%d\n", c, i, i)
		}
		cm := corev1.ConfigMap{Data: map[string]string{c + ".conf": conf.String()}}
		cm.APIVersion, cm.Kind, cm.Name = "v1", "ConfigMap", c+"-conf"
		doc, err := yaml.Marshal(cm)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "%s---\n", doc)
	}
	manifest := three
	for _, c := range []string{"fe", "be"} {
		manifest = strings.Replace(manifest, "  "+c+"Spec:\n", "  "+c+"Spec:\n    configMapInfo: {configMapName: "+c+"-conf, resolveKey: "+c+".conf}\n", 1)
	}
	s.create(text.String() + manifest)
	s.settled("doris")
	s.quiet(time.Second)
	file := s.write("all.yaml", strings.NewReplacer("value-7\n", "value-8\n", "be-2.1.8", "be-3.0.5").Replace(text.String()+manifest))
	mark := s.mark()
	var took []time.Duration
	for range 5 {
		start := time.Now()
		s.saysPlugin(exit.OK, []string{"Pods replaced"}, "plan", "-f", file)
		took = append(took, time.Since(start).Round(time.Millisecond))
	}
	t.Logf("plan of 3 frontends and 3 backends with 500 settings, five times: %v", took)
	s.nothingWritten(mark)
}

// TestCompletionKnowsTheCluster completes names and digests from the API.
func TestCompletionKnowsTheCluster(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.operate()
	s.create(small)
	s.settled("doris")
	s.edit("doris", func(dc *dorisv1.DorisCluster) { dc.Spec.BeSpec.Image = "apache/doris:be-3.0.5" })
	s.says("doris", meta.ConditionChangePending, metav1.ConditionTrue)
	digest := s.result().Sets[0].Approve
	for _, tc := range []struct {
		words []string
		want  string
	}{
		{[]string{"plan", ""}, "dcr\ndoriscluster\n"},
		{[]string{"plan", "dcr", ""}, "doris\n"},
		{[]string{"status", "dcr/"}, "dcr/doris\n"},
		{[]string{"approve", "dcr", "doris", ""}, digest + "\t"},
		{[]string{"approve", "dcr/doris", digest[:2]}, digest + "\t"},
		{[]string{"restart", "dcr", "doris", "--component", ""}, "be\nbroker\ncn\nfe\n"},
		{[]string{"plan", "-n", s.namespace[:8]}, s.namespace + "\n"},
		{[]string{"plan", "-o", ""}, "json\nyaml\nwide\n"},
	} {
		words := append([]string{"__complete", "--kubeconfig", s.cluster.Kubeconfig(), "-n", s.namespace}, tc.words...)
		if out, code := pluggedAnywhere(s, "", words...); code != exit.OK || !strings.Contains(out, tc.want) {
			t.Errorf("%q is completed to (code %d, want %q)\n%s", tc.words, code, tc.want, out)
		}
	}
}

// TestWatchToAPipePrintsNews holds that a line is printed when there is something
// to say, without control characters, and that an interrupt is no failure.
func TestWatchToAPipePrintsNews(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.operate()
	s.create(small)
	s.settled("doris")
	s.quiet(time.Second)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var out lines
	cmd := cli.Command(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out})
	cmd.SetArgs([]string{"status", "dcr", "doris", "--watch", "--interval", "200ms", "--kubeconfig", s.cluster.Kubeconfig(), "-n", s.namespace})
	ended := make(chan error, 1)
	go func() { ended <- cmd.ExecuteContext(ctx) }()
	shows := func(part string) func() string {
		return func() string {
			if text := out.String(); !strings.Contains(text, part) {
				return "it says " + text
			}
			return ""
		}
	}
	s.eventually("the state is printed", shows("Ready=True"))
	s.stays("silence", time.Second, func() string {
		if text := out.String(); strings.Count(text, "\n") != 1 {
			return "it says " + text
		}
		return ""
	})
	s.saysPlugin(exit.OK, nil, "pause", "dcr", "doris", "--yes")
	s.eventually("the news is printed", shows("| paused"))
	interrupt()
	if err := <-ended; err != nil {
		t.Errorf("after an interrupt: %v", err)
	}
	if text := out.String(); strings.Contains(text, "\x1b") {
		t.Errorf("control characters in a pipe: %q", text)
	}
}

// lines is what a command prints while others read it.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
