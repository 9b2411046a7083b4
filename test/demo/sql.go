package demo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// SQL runs a statement through the Service of the frontends, from within a
// frontend's Pod, and returns the rows.
func (d *Demo) SQL(ctx context.Context, statement string) ([]string, error) {
	out, err := d.Kubectl(ctx, "exec", "-n", Namespace, Name+"-fe-0", "-c", "fe", "--",
		"mysql", "-h", Name+"-fe-service", "-P", "9030", "-uroot", "--batch", "--skip-column-names", "-e", statement)
	if err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimSpace(out), "\n"), nil
}

// LiveBackends asks the database for its backends and returns the names of the
// Pods of those that are alive, sorted.
func (d *Demo) LiveBackends(ctx context.Context) ([]string, error) {
	out, err := d.Kubectl(ctx, "exec", "-n", Namespace, Name+"-fe-0", "-c", "fe", "--",
		"mysql", "-h", Name+"-fe-service", "-P", "9030", "-uroot", "--batch", "-e", "SHOW BACKENDS")
	if err != nil {
		return nil, err
	}
	return liveHosts(out), nil
}

// liveHosts reads the rows of SHOW BACKENDS by the names of the columns.
func liveHosts(table string) []string {
	lines := strings.Split(strings.TrimSpace(table), "\n")
	host, alive := -1, -1
	for i, name := range strings.Split(lines[0], "\t") {
		switch name {
		case "Host":
			host = i
		case "Alive":
			alive = i
		}
	}
	if host < 0 || alive < 0 {
		return nil
	}
	var live []string
	for _, l := range lines[1:] {
		row := strings.Split(l, "\t")
		if len(row) > max(host, alive) && row[alive] == "true" {
			pod, _, _ := strings.Cut(row[host], ".")
			live = append(live, pod)
		}
	}
	slices.Sort(live)
	return live
}

// AwaitBackends waits until the database counts n live backends.
func (d *Demo) AwaitBackends(ctx context.Context, n int, limit time.Duration) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		live, err := d.LiveBackends(ctx)
		if err == nil && len(live) == n {
			return live, nil
		}
		select {
		case <-ctx.Done():
			return live, fmt.Errorf("%d of %d backends are alive after %s (last answer: %w)", len(live), n, limit, err)
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// WriteRows makes a table with three copies of each tablet and writes rows.
func (d *Demo) WriteRows(ctx context.Context) error { return d.WriteCopies(ctx, 3) }

// WriteCopies makes a table with so many copies of each tablet and writes three
// rows.
func (d *Demo) WriteCopies(ctx context.Context, copies int) error {
	for _, s := range []string{
		"CREATE DATABASE IF NOT EXISTS demo",
		fmt.Sprintf(`CREATE TABLE IF NOT EXISTS demo.ships (id INT, name VARCHAR(32)) DISTRIBUTED BY HASH(id) BUCKETS 3 PROPERTIES ("replication_num" = "%d")`, copies),
		"INSERT INTO demo.ships VALUES (1, 'Beagle'), (2, 'Fram'), (3, 'Endurance')",
	} {
		if _, err := d.SQL(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

// LosePod deletes a backend's Pod and waits until its successor serves.
func (d *Demo) LosePod(ctx context.Context, pod string) error {
	if _, err := d.Kubectl(ctx, "delete", "pod", "-n", Namespace, pod, "--wait=true"); err != nil {
		return err
	}
	if err := d.AwaitReady(ctx, 5*time.Minute); err != nil {
		return err
	}
	_, err := d.Kubectl(ctx, "wait", "-n", Namespace, "pod/"+pod, "--for=condition=Ready", "--timeout=180s")
	return err
}

// CountRows counts what WriteRows wrote.
func (d *Demo) CountRows(ctx context.Context) (string, error) {
	rows, err := d.SQL(ctx, "SELECT COUNT(*) FROM demo.ships")
	if err != nil {
		return "", err
	}
	return rows[0], nil
}
