package migrate

import (
	"context"
	"fmt"
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	cliplan "github.com/fairlead-dev/fairlead/internal/cli/plan"
	"github.com/fairlead-dev/fairlead/internal/cli/screen"
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
	stateUnknown     = "unknown"
)

// status says for each Pod where its settings stand.
func (r *run) status(ctx context.Context) error {
	var b *backup
	if r.dir != "" {
		var err error
		if b, err = load(r.dir); err != nil {
			return err
		}
		if b == nil {
			r.out.Linef("There is no backup in %s.", r.dir)
		}
	}
	if b != nil && b.UID != string(r.subject.Cluster.UID) {
		return fmt.Errorf("the backup in %s is of another cluster, %s/%s", r.dir, b.Namespace, b.Name)
	}
	dc := r.subject.Cluster
	r.out.Linef("%s: policy %s, %s", r.called(), dc.Annotations[dorisv1.AnnotationRuntimeConfigPolicy], r.approval())
	t := screen.Table{Indent: "  "}
	t.Head("POD", "SETTINGS", "NOTE")
	for i := range r.migration.Components {
		c := &r.migration.Components[i]
		for j := range c.Pods {
			s := r.stands(ctx, member{component: c, pod: &c.Pods[j]}, b)
			t.Row(screen.Cell{Text: c.Pods[j].Name}, screen.Cell{Text: s.state, Paint: s.paint}, screen.Cell{Text: s.note})
		}
	}
	r.out.Print(t)
	for _, f := range r.result.Refused() {
		r.out.Linef("%s", r.out.Painted(screen.Bad, screen.Clean("Refused: "+f.String())))
	}
	return nil
}

// approval says how far the approval is.
func (r *run) approval() string {
	dc := r.subject.Cluster
	text := dc.Annotations[dorisv1.AnnotationRuntimeConfigMigration]
	a, err := runtimeconfig.ReadApproval(text)
	switch {
	case text == "":
		return "no migration is approved"
	case err != nil:
		return "the approval of a migration cannot be read"
	case !r.migration.Open():
		return "migration " + a.ID + " is carried out"
	case doris.Accepts(dc, a.ID):
		return "migration " + a.ID + " is approved, and under way"
	}
	return "migration " + a.ID + " is approved, and not begun"
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
	switch {
	case !cliplan.Ready(m.pod):
		return standing{stateKept, on + "; the Pod is not ready" + failure(m.pod), screen.Mind}
	case saved == nil:
		return standing{stateKept, on, screen.Good}
	}
	file, err := r.read(ctx, m, path.Join(runtimeconfig.Directory, m.file()))
	if err != nil {
		return standing{stateUnknown, err.Error(), screen.Mind}
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
