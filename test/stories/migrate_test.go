package stories

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/cli/exit"
	"github.com/fairlead-dev/fairlead/internal/cli/kube"
	"github.com/fairlead-dev/fairlead/internal/cli/migrate"
	"github.com/fairlead-dev/fairlead/test/story"
)

// filesOfPods stands for the file systems of Pods, which simulated nodes have not: a test
// double of exec. The scripts of the plugin run in it, by a bash that finds nothing but
// bash, cp, awk and cat, and with the directory of the Pod in the place of the root.
type filesOfPods struct {
	t    *testing.T
	root string

	mu    sync.Mutex
	calls int
	// fails is the call at which it fails, counted from 1; 0 for never. torn has that call
	// carried out half.
	fails int
	torn  bool
	// before is done before a call.
	before func(call int)
}

func newFiles(t *testing.T) *filesOfPods {
	t.Helper()
	f := &filesOfPods{t: t, root: t.TempDir()}
	bin := filepath.Join(f.root, "bin")
	must(t, os.MkdirAll(bin, 0o755))
	for _, tool := range []string{"bash", "cp", "awk", "cat"} {
		file, err := exec.LookPath(tool)
		must(t, err)
		must(t, os.Symlink(file, filepath.Join(bin, tool)))
	}
	return f
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var errCut = errors.New("the connection broke")

// Run runs a program as if it were in a Pod.
func (f *filesOfPods) Run(ctx context.Context, pod, _ string, command []string, in []byte) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	if f.before != nil {
		f.before(f.calls)
	}
	if f.calls == f.fails && !f.torn {
		return nil, errCut
	}
	args := make([]string, 0, len(command))
	for _, a := range command[1:] {
		if strings.HasPrefix(a, "/") {
			a = filepath.Join(f.root, pod) + a
		}
		args = append(args, a)
	}
	if f.calls == f.fails {
		in = in[:len(in)/2]
	}
	cmd := exec.CommandContext(ctx, filepath.Join(f.root, "bin", command[0]), args...)
	cmd.Env = []string{"PATH=" + filepath.Join(f.root, "bin")}
	var out, said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, &said
	err := cmd.Run()
	if f.calls == f.fails {
		return nil, errCut // it was carried out, in part, and nobody heard
	}
	if exited, is := errors.AsType[*exec.ExitError](err); is {
		return out.Bytes(), &kube.ExitError{Code: exited.ExitCode(), Said: said.String()}
	}
	return out.Bytes(), err
}

func (f *filesOfPods) put(pod, file, text string) {
	f.t.Helper()
	name := filepath.Join(f.root, pod, file)
	must(f.t, os.MkdirAll(filepath.Dir(name), 0o755))
	must(f.t, os.WriteFile(name, []byte(text), 0o644))
}

func (f *filesOfPods) read(pod, file string) string {
	text, err := os.ReadFile(filepath.Join(f.root, pod, file))
	if err != nil {
		return "none"
	}
	return string(text)
}

const (
	ofFE, ofBE     = "/opt/apache-doris/fe/conf/fe_custom.conf", "/opt/apache-doris/be/conf/be_custom.conf"
	diskFE, diskBE = "/opt/apache-doris/fe/doris-meta", "/opt/apache-doris/be/storage"
)

// copied is where the copy of a Pod is.
func copied(disk, pod, file string) string {
	return disk + "/.doris-runtime-config/" + pod + "/" + file
}

// migrating is a cluster of another operator, taken over, whose settings were changed.
type migrating struct {
	*scene
	files *filesOfPods
	dir   string
}

func newMigrating(t *testing.T, replicas int) *migrating {
	t.Helper()
	s := newScene(t)
	f := &found{scene: s, name: "doris"}
	together([]*scene{s}, [][]func(){s.legacyParts(strings.ReplaceAll(three, "replicas: 3", fmt.Sprintf("replicas: %d", replicas)))})
	s.operate()
	f.takenOver("doris")
	s.settled("doris")
	m := &migrating{scene: s, files: newFiles(t), dir: filepath.Join(t.TempDir(), "backup")}
	for _, pod := range []string{"doris-fe-0", "doris-fe-1", "doris-be-0", "doris-be-1"} {
		disk := diskBE
		if strings.Contains(pod, "-fe-") {
			disk = diskFE
		}
		m.files.put(pod, disk+"/.keep", "")
		m.files.put(pod, "/mnt/.keep", "") // not empty: only /srv is
		must(t, os.MkdirAll(filepath.Join(m.files.root, pod, "srv"), 0o755))
	}
	m.files.put("doris-fe-0", ofFE, "#Mon Nov 30\nqe_slow_log_ms=topsecret-7001\n")
	m.files.put("doris-fe-1", ofFE, "#Mon Nov 30\nqe_slow_log_ms=topsecret-7002\nquery_colocate_join_memory_limit_penalty_factor=3\n")
	m.files.put("doris-be-0", ofBE, "streaming_load_max_mb = topsecret-5000\n")
	return m // doris-be-1 has none
}

// runs has a verb run, and holds its exit code, and that no value is in what it prints.
func (m *migrating) runs(code int, verb string, more ...string) string {
	m.Helper()
	out, got := m.tries(verb, more...)
	if got != code {
		m.Fatalf("%s ended with %d and not with %d:\n%s", verb, got, code, out)
	}
	return out
}

// tries runs a verb, and returns what it prints and its exit code.
func (m *migrating) tries(verb string, more ...string) (out string, code int) {
	m.Helper()
	var printed bytes.Buffer
	flags := genericclioptions.NewConfigFlags(true)
	config := m.cluster.Kubeconfig()
	flags.KubeConfig, flags.Namespace = &config, &m.namespace
	cmd := migrate.CommandThrough(flags, genericiooptions.IOStreams{In: strings.NewReader(""), Out: &printed, ErrOut: &printed}, m.files)
	if verb != "migrate" {
		more = slices.DeleteFunc(more, func(a string) bool { return a == "--yes" }) // it asks nothing
	}
	cmd.SetArgs(append([]string{verb, "dcr", "doris", "--backup-dir", m.dir}, more...))
	cmd.SetOut(&printed)
	cmd.SetErr(&printed)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	err := cmd.ExecuteContext(m.Context())
	code, say := exit.Code(err)
	if say {
		fmt.Fprintln(&printed, "Error:", err)
	}
	out = printed.String()
	if strings.Contains(out, "topsecret") {
		m.Errorf("%s prints a value:\n%s", verb, out)
	}
	return out, code
}

func (m *migrating) says(out string, parts ...string) {
	m.Helper()
	for _, p := range parts {
		if !strings.Contains(out, p) {
			m.Errorf("it does not say %q:\n%s", p, out)
		}
	}
}

// modes holds that nobody else can look into the backup.
func (m *migrating) modes() {
	m.Helper()
	must(m.T, filepath.WalkDir(m.dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		want := fs.FileMode(0o600)
		if entry.IsDir() {
			want = 0o700
		}
		if err == nil && info.Mode().Perm() != want {
			m.Errorf("%s has mode %o", name, info.Mode().Perm())
		}
		if strings.HasPrefix(entry.Name(), ".") {
			m.Errorf("%s was left", name)
		}
		return err
	}))
}

// allCopied holds that every Pod has what it had, and its mark.
func (m *migrating) allCopied(id string) {
	m.Helper()
	for _, pod := range m.pods("") {
		m.isCopied(pod.Name, id)
	}
}

func (m *migrating) isCopied(pod, id string) {
	m.Helper()
	live, put, want := ofBE, copied(diskBE, pod, "be_custom.conf"), ""
	if strings.Contains(pod, "-fe-") {
		live, put = ofFE, copied(diskFE, pod, "fe_custom.conf")
	}
	if had := m.files.read(pod, live); had != "none" {
		want = had
	}
	if got := m.files.read(pod, put); got != want {
		m.Errorf("%s: the copy is %q, want %q", pod, got, want)
	}
	if m.files.read(pod, filepath.Dir(put)+"/.migrated-"+id) == "none" {
		m.Errorf("%s has no mark", pod)
	}
}

func (m *migrating) id() string {
	m.Helper()
	text := readFile(m.T, m.dir, "manifest.json")
	_, rest, _ := strings.Cut(text, `"id": "`)
	id, _, _ := strings.Cut(rest, `"`)
	return id
}

// TestSettingsAreMigrated tells of a cluster of another operator whose settings are
// migrated, against a real API server.
func TestSettingsAreMigrated(t *testing.T) {
	t.Parallel()
	m := newMigrating(t, 2)
	before := m.identities()
	m.says(m.runs(exit.OK, "status"), "no migration is approved", "not backed up")
	m.says(m.runs(exit.Failed, "review"), "there is no backup")
	m.says(m.runs(exit.OK, "backup"), "3 files of 4 Pods")
	m.modes()
	m.says(m.runs(exit.OK, "backup"), "this very backup already")
	m.says(m.runs(exit.OK, "status"), "backed up")
	m.says(m.runs(exit.OK, "review"), "qe_slow_log_ms", "only in the node", "volume meta", "Nothing keeps it")
	m.says(m.runs(exit.OK, "review", "-o", "json"), `"setting": "qe_slow_log_ms"`, `"configMap": "absent"`, `"blocked": []`)
	m.says(m.runs(exit.OK, "status", "-o", "json"), `"state": "none"`, `"state": "backedUp"`)
	m.says(m.runs(exit.Failed, "status", "-o", "wide"), "json or yaml")
	m.says(m.runs(exit.Failed, "migrate"), "--yes", "spec.template")
	if m.files.read("doris-be-0", copied(diskBE, "doris-be-0", "be_custom.conf")) != "none" {
		t.Error("something was copied unasked")
	}
	m.says(m.runs(exit.OK, "migrate", "--yes"), "doris-fe-0: copied to", "Approved: the migration "+m.id())
	m.allCopied(m.id())
	m.says(m.runs(exit.OK, "migrate", "--yes"), "already")
	m.settled("doris")
	for name, uid := range m.identities() {
		if before[name] == uid {
			t.Errorf("%s is the same Pod", name)
		}
	}
	for _, pod := range m.pods("") {
		if !hasKept(pod.Spec.Containers[0].VolumeMounts) {
			t.Errorf("%s does not keep its settings", pod.Name)
		}
	}
	dc := m.doris("doris")
	if dc.Annotations[dorisv1.AnnotationRuntimeConfigPolicy] != "enabled" || dc.Annotations[meta.AnnotationMigrationAccepted] != m.id() {
		t.Errorf("annotations: %v", dc.Annotations)
	}
	if diff := cmp.Diff([]dorisv1.ComponentType{"be", "fe"}, dc.Status.RuntimeConfig.Kept); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	m.says(m.runs(exit.OK, "backup"), "keeps its settings already")
	m.says(m.runs(exit.OK, "migrate", "--yes"), "keeps its settings already")
	m.says(m.runs(exit.OK, "status"), "is carried out", "kept")
	m.says(m.runs(exit.OK, "status", "-o", "json"), `"state": "done"`, `"state": "kept"`)
	m.says(m.runs(exit.OK, "review", "-o", "json"), `"kept": true`)
}

// TestMigrationIsStoppedByWhatDiffers holds that nothing is approved, and what is there
// stays as it is, when the cluster, a node or a volume is not as it was backed up.
func TestMigrationIsStoppedByWhatDiffers(t *testing.T) {
	t.Parallel()
	m := newMigrating(t, 2)
	before := m.identities()
	nothing := func(what string) {
		t.Helper()
		dc := m.doris("doris")
		if dc.Annotations[dorisv1.AnnotationRuntimeConfigMigration] != "" || dc.Spec.RuntimeConfigPersistence != nil {
			t.Fatalf("%s: it was approved", what)
		}
	}
	must(t, os.MkdirAll(m.dir, 0o755))
	m.says(m.runs(exit.Failed, "backup"), "others may look into")
	must(t, os.Chmod(m.dir, 0o700))
	m.files.put("doris-be-1", ofBE+"/x", "")
	m.says(m.runs(exit.Failed, "backup"), "is no file")
	must(t, os.RemoveAll(filepath.Join(m.files.root, "doris-be-1", ofBE)))
	m.runs(exit.OK, "backup")

	// A setting was changed after the backup.
	m.files.put("doris-be-1", ofBE, "x = topsecret\n")
	m.says(m.runs(exit.Failed, "migrate", "--yes"), "settings of doris-be-1 are others now", "new backup")
	nothing("a setting was changed")
	m.says(m.runs(exit.Failed, "backup"), "holds another backup")
	m.says(m.runs(exit.OK, "status"), "changed")
	must(t, os.Remove(filepath.Join(m.files.root, "doris-be-1", ofBE)))

	// Other settings are on a volume.
	there := copied(diskBE, "doris-be-0", "be_custom.conf")
	m.files.put("doris-be-0", there, "x = topsecret-other\n")
	m.says(m.runs(exit.Failed, "review"), "holds other settings", "not overwritten")
	m.says(m.runs(exit.Failed, "review", "-o", "json"), `"reason": "RuntimeConfigMigrationOutdated"`)
	m.says(m.runs(exit.Failed, "migrate", "--yes"), "holds other settings")
	nothing("other settings are on a volume")
	if got := m.files.read("doris-be-0", there); got != "x = topsecret-other\n" {
		t.Errorf("it was overwritten: %q", got)
	}
	must(t, os.RemoveAll(filepath.Join(m.files.root, "doris-be-0", diskBE, ".doris-runtime-config")))

	// The backup was edited.
	saved := filepath.Join(m.dir, "doris-fe-0.fe_custom.conf")
	text := readFile(t, saved)
	must(t, os.WriteFile(saved, []byte(text+"y = 1\n"), 0o600))
	m.says(m.runs(exit.Failed, "migrate", "--yes"), "not what was backed up")
	must(t, os.WriteFile(saved, []byte(text), 0o600))

	// A Pod is replaced while settings are copied.
	m.files.calls, m.files.before = 0, func(call int) {
		if call == 14 {
			pod := m.pods("be")[1]
			must(t, m.client.Delete(t.Context(), &pod))
		}
	}
	m.runs(exit.Failed, "migrate", "--yes")
	m.files.before = nil
	nothing("a Pod was replaced")
	m.eventually("doris-be-1 is another Pod, and serves", func() string { // only then may the operator hear of it
		for _, pod := range m.pods("be") {
			if pod.Name == "doris-be-1" && string(pod.UID) != before[pod.Name] && story.PodReady(&pod) {
				return ""
			}
		}
		return "it is not there"
	})
	m.settled("doris")
	m.says(m.runs(exit.Failed, "migrate", "--yes"), "Pod doris-be-1 is another one now")
	m.says(m.runs(exit.OK, "status"), "lost", "another Pod since the backup")

	// The spec was edited; another directory, and it goes on.
	m.edit("doris", func(dc *dorisv1.DorisCluster) { dc.Spec.BeSpec.ScaleInPolicy = dorisv1.ScaleInDecommission })
	m.settled("doris")
	m.says(m.runs(exit.Failed, "migrate", "--yes"), "the spec was edited since the backup")
	nothing("the spec was edited")
	m.dir += "-2"
	m.runs(exit.OK, "backup")
	delete(before, "doris-be-1")
	if gone := moved(before, m.identities()); gone != "" {
		t.Error(gone)
	}
	m.runs(exit.OK, "migrate", "--yes")
	m.allCopied(m.id())
	m.settled("doris")
}

// TestMigrationInterruptedAnywhere breaks the connection at each call of exec, before it is
// carried out and when it is carried out and nobody hears of it, half written, and runs the
// verb again: nothing was approved, it comes to its end, and every copy is whole.
func TestMigrationInterruptedAnywhere(t *testing.T) {
	t.Parallel()
	m := newMigrating(t, 1)
	m.op.end(syscall.SIGTERM) // each run is approved in the end, and nothing is to follow
	runs := 0
	for _, verb := range []string{"backup", "migrate"} {
		for _, torn := range []bool{false, true} {
			if torn && verb == "backup" {
				break // it only reads
			}
			for call := 1; m.interrupted(verb, call, torn); call++ {
				runs++
			}
		}
	}
	t.Logf("%d runs were interrupted", runs)
	if runs < 40 {
		t.Errorf("only %d runs were interrupted", runs)
	}
	m.op.start() // it carries out the last one
	m.settled("doris")
	m.says(m.runs(exit.OK, "status"), "migration "+m.id()+" is carried out", "kept")
}

// interrupted breaks one call of a verb and runs it again, and what follows it. It tells
// whether there was such a call.
func (m *migrating) interrupted(verb string, call int, torn bool) bool {
	m.Helper()
	m.afresh()
	if verb == "migrate" {
		m.runs(exit.OK, "backup")
	}
	m.files.calls, m.files.fails, m.files.torn = 0, call, torn
	out, code := m.tries(verb, "--yes")
	reached := m.files.calls >= call
	m.files.fails = 0
	if reached && code == exit.OK {
		m.Fatalf("%s: call %d failed, and it was done all the same:\n%s", verb, call, out)
	}
	if approved := m.doris("doris").Spec.RuntimeConfigPersistence != nil; approved && reached {
		m.Fatalf("%s: call %d failed, and it was approved", verb, call)
	}
	if verb == "backup" {
		m.runs(exit.OK, "backup")
	}
	m.runs(exit.OK, "migrate", "--yes")
	m.allCopied(m.id())
	return reached
}

// afresh is a cluster of which nothing is backed up, copied or approved.
func (m *migrating) afresh() {
	m.Helper()
	m.dir = filepath.Join(m.TempDir(), "backup")
	for _, pod := range m.pods("") {
		for _, disk := range []string{diskFE, diskBE} {
			must(m.T, os.RemoveAll(filepath.Join(m.files.root, pod.Name, disk, ".doris-runtime-config")))
		}
	}
	m.edit("doris", func(dc *dorisv1.DorisCluster) {
		delete(dc.Annotations, dorisv1.AnnotationRuntimeConfigMigration)
		dc.Spec.RuntimeConfigPersistence = nil
	})
}
