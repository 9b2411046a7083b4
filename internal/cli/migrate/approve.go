package migrate

import (
	"context"
	"errors"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	cliplan "github.com/fairlead-dev/fairlead/internal/cli/plan"
	"github.com/fairlead-dev/fairlead/internal/cli/screen"
	"github.com/fairlead-dev/fairlead/internal/system/doris/runtimeconfig"
)

// migrate copies a backup onto the volumes, and approves when all copies are there.
func (r *run) migrate(ctx context.Context) error {
	if r.done() {
		return nil
	}
	b, err := r.saved()
	if err != nil {
		return err
	}
	if r.subject.Cluster.Annotations[dorisv1.AnnotationRuntimeConfigMigration] == b.Approval && asked(r.subject.Cluster) {
		r.out.Linef("The migration %s is approved already: the operator replaces the Pods.", b.ID)
		r.follow()
		return nil
	}
	findings, err := r.against(ctx, b)
	if err != nil {
		return err
	}
	if err := r.blocked(findings); err != nil {
		return err
	}
	if err := r.agreed(ctx, b); err != nil {
		return err
	}
	for _, m := range r.members() {
		if err := r.copied(ctx, m, b); err != nil {
			return fmt.Errorf("%w. Nothing was approved; run it again when that is mended", err)
		}
	}
	if err := r.approve(ctx, b); err != nil {
		return err
	}
	r.out.Linef("Approved: the migration %s.", b.ID)
	r.follow()
	return nil
}

// asked tells whether the spec asks for settings to be kept.
func asked(dc *dorisv1.DorisCluster) bool {
	p := dc.Spec.RuntimeConfigPersistence
	return p != nil && p.Enabled != nil && *p.Enabled
}

func (r *run) follow() {
	r.out.Linef("Follow it with: %s", r.next("status"))
	r.out.Linef("Change no setting of a running node before every Pod is kept, and keep the backup until then.")
}

// agreed prints what would follow, and asks.
func (r *run) agreed(ctx context.Context, b *backup) error {
	approved := *r.subject
	approved.Cluster = withApproval(r.subject.Cluster, b.Approval)
	result, err := approved.Plan(nil)
	if err != nil {
		return err
	}
	r.out.Linef("%s are copied to the volumes first. With that and the approval, the plan is:", screen.Many(b.saved(), "file"))
	cliplan.Print(r.out, result, false)
	if refused := result.Refused(); len(refused) > 0 {
		return errBlocked
	}
	if r.yes {
		return nil
	}
	r.out.Linef("")
	return screen.Confirm(ctx, r.In, r.Out, fmt.Sprintf("Migrate %s?", r.called()))
}

// withApproval is the resource as the approval makes it.
func withApproval(dc *dorisv1.DorisCluster, approval string) *dorisv1.DorisCluster {
	out := dc.DeepCopy()
	if out.Annotations == nil {
		out.Annotations = map[string]string{}
	}
	out.Annotations[dorisv1.AnnotationRuntimeConfigMigration] = approval
	out.Spec.RuntimeConfigPersistence = &dorisv1.RuntimeConfigPersistence{Enabled: new(true)}
	out.Generation++
	return out
}

// copied brings the settings of one member onto its volume, unless they are there.
func (r *run) copied(ctx context.Context, m member, b *backup) error {
	content := b.files[m.pod.Name] // none is an empty file: nothing seeds it
	on, err := r.look(ctx, m, b.ID)
	if err != nil {
		return err
	}
	if on.begun && !on.marked || !on.there {
		if _, err := r.copy(ctx, m, "write", b.ID, append([]byte{}, content...)); err != nil {
			return err
		}
	}
	is, err := r.read(ctx, m, m.target())
	if err != nil {
		return err
	}
	if is == nil || digest(is) != digest(content) {
		return fmt.Errorf("in Pod %s: %s is not what was copied there; it is not overwritten", m.pod.Name, m.target())
	}
	if on.marked {
		r.out.Linef("%s: copied before", m.pod.Name)
		return nil
	}
	if _, err := r.copy(ctx, m, "mark", b.ID, nil); err != nil {
		return err
	}
	r.out.Linef("%s: copied to %s, and read back", m.pod.Name, m.target())
	return nil
}

// attempts is how often the approval is tried on a resource whose status alone keeps
// changing.
const attempts = 5

// approve holds that all is as it was backed up, and writes the approval.
func (r *run) approve(ctx context.Context, b *backup) error {
	agreed := r.subject.Cluster
	for range attempts {
		if err := r.undisturbed(ctx); err != nil {
			return err
		}
		findings, err := r.against(ctx, b)
		if err != nil {
			return err
		}
		if err := r.blocked(findings); err != nil {
			return err
		}
		if !maps.Equal(agreed.Annotations, r.subject.Cluster.Annotations) {
			return errors.New("the resource was changed by somebody else meanwhile, so the plan above may not hold; nothing was approved: run it again")
		}
		if err := r.whole(ctx, b); err != nil {
			return err
		}
		err = r.session.KeepSettings(ctx, r.subject.Cluster.DeepCopy(), b.Approval)
		if err == nil || !apierrors.IsConflict(err) {
			return err
		}
	}
	return fmt.Errorf("the resource keeps changing (%d attempts); nothing was approved: run it again", attempts)
}

// whole holds that every member has its copy and its mark.
func (r *run) whole(ctx context.Context, b *backup) error {
	for _, m := range r.members() {
		on, err := r.look(ctx, m, b.ID)
		if err != nil {
			return err
		}
		if !on.marked || !on.there {
			return fmt.Errorf("in Pod %s: the copy in %s is gone; nothing was approved: run it again", m.pod.Name, runtimeconfig.OnVolume)
		}
	}
	return nil
}
