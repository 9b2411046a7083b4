package migrate

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	cliplan "github.com/fairlead-dev/fairlead/internal/cli/plan"
	"github.com/fairlead-dev/fairlead/internal/cli/screen"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/system/doris"
	"github.com/fairlead-dev/fairlead/internal/system/doris/runtimeconfig"
)

// standing is where the settings of one Pod stand.
type standing struct {
	state, note string
	paint       screen.Paint
}

// The states of a Pod.
const (
	stateNotBackedUp = "not backed up"
	stateBackedUp    = "backed up"
	stateBegun       = "being copied"
	stateCopied      = "copied"
	stateKept        = "kept"
	stateChanged     = "changed"
	stateLost        = "lost"
	stateCutShort    = "cut short"
	stateUnknown     = "unknown"
)

// wordOf is a state as programs read it.
var wordOf = map[string]string{
	stateNotBackedUp: "notBackedUp", stateBackedUp: "backedUp", stateBegun: "beingCopied", stateCopied: "copied", stateKept: "kept",
	stateChanged: "changed", stateLost: "lost", stateCutShort: "cutShort", stateUnknown: "unknown",
}

// status says for each Pod where its settings stand.
func (r *run) status(ctx context.Context) error {
	var b *backup
	if r.dir != "" {
		var err error
		if b, err = load(r.dir); err != nil {
			return err
		}
	}
	if b != nil && b.UID != string(r.subject.Cluster.UID) {
		return fmt.Errorf("the backup in %s is of another cluster, %s/%s", r.dir, b.Namespace, b.Name)
	}
	v := r.stood(ctx, b)
	if told, err := cliplan.Encode(r.Out, r.output, v); told || err != nil {
		return err
	}
	if b == nil && r.dir != "" {
		r.out.Linef("There is no backup in %s.", r.dir)
	}
	r.out.Linef("%s: policy %s, %s", r.called(), v.Policy, v.Migration.says)
	t := screen.Table{Indent: "  "}
	t.Head("POD", "SETTINGS", "NOTE")
	for _, p := range v.Pods {
		t.Row(screen.Cell{Text: p.Pod}, screen.Cell{Text: p.standing.state, Paint: p.standing.paint}, screen.Cell{Text: p.Note})
	}
	r.out.Print(t)
	for _, f := range v.Refused {
		r.out.Linef("%s", r.out.Painted(screen.Bad, screen.Clean("Refused: "+f.String())))
	}
	return nil
}

// stood is all that status says.
func (r *run) stood(ctx context.Context, b *backup) stood {
	dc := r.subject.Cluster
	v := stood{
		Namespace: dc.Namespace, Name: dc.Name, Policy: dc.Annotations[dorisv1.AnnotationRuntimeConfigPolicy],
		Migration: r.approval(), Backup: r.madeOf(b), Pods: []stoodPod{}, Refused: append([]plan.Finding{}, r.result.Refused()...),
	}
	for i := range r.migration.Components {
		c := &r.migration.Components[i]
		for j := range c.Pods {
			s := r.stands(ctx, member{component: c, pod: &c.Pods[j]}, b)
			v.Pods = append(v.Pods, stoodPod{Component: string(c.Kind), Pod: c.Pods[j].Name, State: wordOf[s.state], Note: s.note, standing: s})
		}
	}
	return v
}

// approval says how far the approval is.
func (r *run) approval() stoodMigration {
	dc := r.subject.Cluster
	text := dc.Annotations[dorisv1.AnnotationRuntimeConfigMigration]
	a, err := runtimeconfig.ReadApproval(text)
	switch {
	case text == "":
		return stoodMigration{"", "none", "no migration is approved"}
	case err != nil:
		return stoodMigration{"", "unreadable", "the approval of a migration cannot be read"}
	case !r.migration.Open():
		return stoodMigration{a.ID, "done", "migration " + a.ID + " is carried out"}
	case doris.Accepts(dc, a.ID):
		return stoodMigration{a.ID, "underWay", "migration " + a.ID + " is approved, and under way"}
	}
	return stoodMigration{a.ID, "approved", "migration " + a.ID + " is approved, and not begun"}
}

// stands says where the settings of one Pod stand.
func (r *run) stands(ctx context.Context, m member, b *backup) standing {
	saved := savedOf(b, m.pod.Name)
	if keeps(m.pod, string(m.component.Kind)) {
		return r.standsKept(ctx, m, b, saved)
	}
	switch {
	case !cliplan.Ready(m.pod):
		return standing{stateUnknown, "the Pod is not ready", screen.Mind}
	case saved == nil:
		return standing{stateNotBackedUp, r.wouldBeLost(), screen.Mind}
	case saved.UID != string(m.pod.UID):
		return standing{stateLost, "another Pod since the backup, and it does not keep settings: " + r.ways(m), screen.Bad}
	}
	now, err := r.read(ctx, m, m.component.File)
	if err != nil {
		return standing{stateUnknown, err.Error(), screen.Mind}
	}
	switch {
	case now == nil && saved.File != "" && saved.Container != containerOf(m.pod, string(m.component.Kind)):
		return standing{stateLost, "the container was started again since the backup, and its file is gone: " + r.ways(m), screen.Bad}
	case digestOf(now) != saved.Digest:
		return standing{stateChanged, "its settings are others than in the backup" + anew, screen.Mind}
	case m.component.Record == nil:
		return standing{stateBackedUp, "there is no volume to copy it to", screen.Mind}
	}
	return r.standsOnVolume(ctx, m, b)
}

// standsOnVolume says how far the copy of a Pod is whose settings are backed up.
func (r *run) standsOnVolume(ctx context.Context, m member, b *backup) standing {
	on, err := r.look(ctx, m, b.ID)
	if err != nil {
		return standing{stateUnknown, err.Error(), screen.Mind}
	}
	switch {
	case on.marked:
		return standing{stateCopied, "on volume " + m.component.Record.Volume + "; in force from there when the Pod is replaced", screen.Good}
	case on.begun:
		return standing{stateBegun, "run migrate again", screen.Mind}
	}
	return standing{stateBackedUp, "", screen.Good}
}

// standsKept says what a Pod has that keeps its settings.
func (r *run) standsKept(ctx context.Context, m member, b *backup, saved *savedMember) standing {
	on := "on a volume"
	if m.component.Record != nil {
		on = "on volume " + m.component.Record.Volume
	}
	if !cliplan.Ready(m.pod) {
		return standing{stateKept, on + "; the Pod is not ready" + failure(m.pod), screen.Mind}
	}
	file, err := r.read(ctx, m, path.Join(runtimeconfig.Directory, m.file()))
	if err != nil {
		return standing{stateUnknown, err.Error(), screen.Mind}
	}
	if why := r.cutShort(m, file); why != "" {
		return standing{stateCutShort, on + ": " + why, screen.Bad}
	}
	if saved == nil {
		return standing{stateKept, on, screen.Good}
	}
	mark, err := r.read(ctx, m, path.Join(runtimeconfig.Directory, doris.MarkOfCopy(b.ID)))
	if err != nil {
		return standing{stateUnknown, err.Error(), screen.Mind}
	}
	had, has := m.component.Settings(b.files[m.pod.Name]), m.component.Settings(file)
	var missing []string
	for key := range had {
		if _, there := has[key]; !there {
			missing = append(missing, key)
		}
	}
	slices.Sort(missing)
	switch {
	case mark == nil:
		return standing{stateKept, on + "; it has no mark of this migration", screen.Mind}
	case len(missing) > 0:
		return standing{stateKept, fmt.Sprintf("%s; since the backup it has let go of %v", on, missing), screen.Mind}
	}
	return standing{stateKept, fmt.Sprintf("%s, migrated: %d of %d settings of the backup are there", on, len(had), len(had)), screen.Good}
}

// cutShort says what is the matter with the file of a node that ended while it wrote it:
// a frontend writes each line with its end, and a comment before the first. An empty one
// is that of a node in which nothing was changed yet, where nobody knows otherwise.
func (r *run) cutShort(m member, file []byte) string {
	if runtimeconfig.Kind(m.component.Kind) != runtimeconfig.Frontend || file == nil {
		return "" // a backend replaces its file
	}
	node := doris.Observed(r.subject.World, r.subject.Cluster.Name, m.component.Kind).Nodes[m.pod.Name]
	var had []string
	for _, keys := range []map[string]string{node.Lost, node.Other} {
		had = slices.AppendSeq(had, maps.Keys(keys))
	}
	slices.Sort(had)
	known := ""
	if len(had) > 0 {
		known = "; known before: " + strings.Join(had, ", ")
	}
	switch {
	case len(file) == 0 && len(had) > 0:
		return m.file() + " is empty: the node ended while it wrote it, or nothing was ever kept in it" + known + ". Set these again"
	case len(file) > 0 && file[len(file)-1] != '\n':
		return m.file() + " ends in the middle of a line: the node ended while it wrote it" + known + ". Set again what it lacks, and the last that it names"
	}
	return ""
}

// failure is what the init container that prepares the settings of a Pod has said last.
func failure(pod *corev1.Pod) string {
	for _, c := range pod.Status.InitContainerStatuses {
		for _, t := range []*corev1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
			if c.Name == runtimeconfig.InitName && t != nil && t.ExitCode != 0 {
				return ": " + t.Message
			}
		}
	}
	return ""
}

// keeps tells whether a Pod was made so that its settings are kept.
func keeps(pod *corev1.Pod, container string) bool {
	for _, c := range pod.Spec.Containers {
		if c.Name == container && slices.ContainsFunc(c.VolumeMounts, runtimeconfig.Mounts) {
			return true
		}
	}
	return false
}

// wouldBeLost says what becomes of the settings of a Pod that are not backed up.
func (r *run) wouldBeLost() string {
	if r.dir == "" {
		return "they are lost when the Pod is replaced; --backup-dir tells what is backed up"
	}
	return "they are lost when the Pod is replaced"
}

// ways is what to do about settings that are gone from a Pod.
func (r *run) ways(m member) string {
	return fmt.Sprintf("set them again, as in %s, and make a new backup in another directory", path.Join(r.dir, nameOf(m.pod.Name, m.file())))
}

func savedOf(b *backup, pod string) *savedMember {
	if b == nil {
		return nil
	}
	for i := range b.Members {
		if b.Members[i].Pod == pod {
			return &b.Members[i]
		}
	}
	return nil
}

// digestOf is the digest of a file that may not be there.
func digestOf(content []byte) string {
	if content == nil {
		return ""
	}
	return digest(content)
}
