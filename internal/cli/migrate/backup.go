package migrate

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/cli/screen"
)

// idBytes is the length of the id of a migration.
const idBytes = 8

// backup saves what is in force.
func (r *run) backup(ctx context.Context) error {
	if r.done() {
		return nil
	}
	if err := r.blocked(r.migration.Findings); err != nil {
		return err
	}
	if err := private(r.dir); err != nil {
		return err
	}
	had, err := load(r.dir)
	if err != nil {
		return err
	}
	now, err := r.current(ctx)
	if err != nil {
		return err
	}
	if err := r.undisturbed(ctx); err != nil {
		return err
	}
	if had != nil {
		if other := had.sameAs(now); other != "" {
			return fmt.Errorf("%s holds another backup, of %s (%s); it was not overwritten: name another directory with --backup-dir", r.dir, had.Taken.Format("2006-01-02 15:04"), other)
		}
		r.out.Linef("%s holds this very backup already.", r.dir)
		return nil
	}
	if now.ID, err = newID(r.random); err != nil {
		return err
	}
	now.Approval = r.migration.Approves(r.subject.Cluster, now.ID).String()
	if err := now.write(r.dir); err != nil {
		return fmt.Errorf("writing the backup: %w", err)
	}
	r.out.Linef("Backed up %s of %s in %s: migration %s.", screen.Many(now.saved(), "file"), screen.Many(len(now.Members), "Pod"), r.dir, now.ID)
	r.out.Linef("Look at it with: %s", r.next("review"))
	return nil
}

func newID(random io.Reader) (string, error) {
	b := make([]byte, idBytes)
	if _, err := io.ReadFull(random, b); err != nil {
		return "", fmt.Errorf("making an id: %w", err)
	}
	return hex.EncodeToString(b), nil
}

// current reads from all Pods what is in force, as a backup without an id.
func (r *run) current(ctx context.Context) (*backup, error) {
	dc := r.subject.Cluster
	b := &backup{files: map[string][]byte{}, manifest: manifest{
		Version: manifestVersion, Taken: r.now().UTC(), Kind: dorisv1.Kind, Namespace: dc.Namespace, Name: dc.Name, UID: string(dc.UID), Generation: dc.Generation,
	}}
	for _, m := range r.members() {
		content, err := r.read(ctx, m, m.component.File)
		if err != nil {
			return nil, err
		}
		saved := savedMember{Component: string(m.component.Kind), Pod: m.pod.Name, UID: string(m.pod.UID), Container: containerOf(m.pod, string(m.component.Kind))}
		if content != nil {
			saved.File, saved.Digest = nameOf(m.pod.Name, m.file()), digest(content)
			b.files[m.pod.Name] = content
		}
		b.Members = append(b.Members, saved)
	}
	return b, nil
}

// saved counts the files of a backup.
func (b *backup) saved() int {
	n := 0
	for _, m := range b.Members {
		if m.File != "" {
			n++
		}
	}
	return n
}

// containerOf is the id of a container of a Pod as it runs now.
func containerOf(pod *corev1.Pod, name string) string {
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name == name {
			return c.ContainerID
		}
	}
	return ""
}

// undisturbed looks at the cluster again, and holds that it is the one that was read.
func (r *run) undisturbed(ctx context.Context) error {
	again, err := r.see(ctx, r.subject.Cluster.Name)
	if err != nil {
		return err
	}
	before := r.seen
	r.seen = again
	if err := r.blocked(again.migration.Findings); err != nil {
		return err
	}
	if again.identity() != before.identity() {
		return fmt.Errorf("%s was changed meanwhile; nothing was approved: stop what changes it, and run it again", r.called())
	}
	return nil
}

// identity is all that has to stay the same while settings are read and copied.
func (s *seen) identity() string {
	var text strings.Builder
	text.WriteString(s.migration.Approves(s.subject.Cluster, "").String())
	for _, m := range s.members() {
		fmt.Fprintf(&text, " %s=%s/%s", m.pod.Name, m.pod.UID, containerOf(m.pod, string(m.component.Kind)))
	}
	return text.String()
}
