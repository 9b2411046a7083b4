package migrate

import (
	"context"
	"fmt"

	cliplan "github.com/fairlead-dev/fairlead/internal/cli/plan"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/system/doris"
	"github.com/fairlead-dev/fairlead/internal/system/doris/runtimeconfig"
)

// review says what is in the backup, what would be done, and what blocks.
func (r *run) review(ctx context.Context) error {
	if !r.migration.Open() {
		if told, err := cliplan.Encode(r.Out, r.output, r.reviewedOf(nil)); told || err != nil {
			return err
		}
	}
	if r.done() {
		return nil
	}
	b, err := r.saved()
	if err != nil {
		return err
	}
	findings, err := r.against(ctx, b)
	if err != nil {
		return err
	}
	v := r.reviewedOf(b)
	v.Blocked = append(v.Blocked, findings...)
	if told, err := cliplan.Encode(r.Out, r.output, v); err != nil {
		return err
	} else if told {
		if len(findings) > 0 {
			return errBlocked
		}
		return nil
	}
	r.printReviewed(b, v)
	if err := r.blocked(findings); err != nil {
		return err
	}
	r.out.Linef("Nothing keeps it from that: %s", r.next("migrate"))
	return nil
}

// saved is the backup in the directory.
func (r *run) saved() (*backup, error) {
	if r.dir == "" {
		return nil, private("")
	}
	b, err := load(r.dir)
	if err == nil && b == nil {
		err = fmt.Errorf("--backup-dir: there is no backup in %s: make one with `kubectl fairlead runtime-config backup`", r.dir)
	}
	return b, err
}

func (r *run) component(kind string) *doris.MigrationComponent {
	for i := range r.migration.Components {
		if c := &r.migration.Components[i]; string(c.Kind) == kind {
			return c
		}
	}
	return nil
}

// against says what keeps a backup from being migrated: what the cluster lacks, and in
// what it is another one than when it was backed up. What is on the volumes already counts.
func (r *run) against(ctx context.Context, b *backup) ([]plan.Finding, error) {
	if len(r.migration.Findings) > 0 {
		return r.migration.Findings, nil
	}
	refuse := func(field, reason, message string) []plan.Finding {
		return []plan.Finding{{Severity: plan.Refusal, Field: field, Reason: reason, Message: message}}
	}
	if now := r.migration.Approves(r.subject.Cluster, b.ID).String(); now != b.Approval {
		return refuse("--backup-dir", runtimeconfig.ReasonMigrationOutdated, r.outdated(b)), nil
	}
	now, err := r.current(ctx)
	if err != nil {
		return nil, err
	}
	if other := b.sameAs(now); other != "" {
		return refuse("--backup-dir", runtimeconfig.ReasonMigrationOutdated, other+anew), nil
	}
	for _, m := range r.members() {
		on, err := r.look(ctx, m, b.ID)
		if err != nil {
			return refuse("Pod "+m.pod.Name, runtimeconfig.ReasonStorageUnavailable, err.Error()), nil
		}
		if !on.there || on.begun && !on.marked {
			continue
		}
		content, err := r.read(ctx, m, m.target())
		if err != nil {
			return nil, err
		}
		if digest(content) != digest(b.files[m.pod.Name]) {
			return refuse("Pod "+m.pod.Name, runtimeconfig.ReasonMigrationOutdated, fmt.Sprintf(
				"%s is there already and holds other settings; it is not overwritten: look at it, and remove the directory in the Pod if it is of no use any more", m.target())), nil
		}
	}
	return nil, nil
}

// anew ends what is said of a backup that does not hold any more.
const anew = ": make a new backup in another directory"

// outdated says in which of its identities a cluster is another one than that of a backup.
func (r *run) outdated(b *backup) string {
	dc := r.subject.Cluster
	switch {
	case b.UID != string(dc.UID):
		return fmt.Sprintf("the backup is of another cluster, %s/%s%s", b.Namespace, b.Name, anew)
	case b.Generation != dc.Generation:
		return "the spec was edited since the backup" + anew
	}
	return "a StatefulSet, its number of replicas or its volumes are others than in the backup" + anew
}
