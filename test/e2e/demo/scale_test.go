package demo_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/test/demo"
)

// cargoRows are the rows of a table whose tablets have one copy each: whatever goes with a backend
// is gone.
const cargoRows = 60

// backendsComeAndGo scales the backends from three to five and back, twice. The
// operator is killed while members leave, and when they come. No row is lost.
func backendsComeAndGo(ctx context.Context, t *testing.T, d *demo.Demo) {
	t.Helper()
	l := live{T: t, Demo: d}
	l.scale(ctx, "beSpec", 5)
	l.members(ctx, "be", 5)
	var values []string
	for n := range cargoRows {
		values = append(values, fmt.Sprintf("(%d, 'crate %d')", n, n))
	}
	for _, s := range []string{
		"CREATE DATABASE IF NOT EXISTS demo",
		`CREATE TABLE demo.cargo (id INT, name VARCHAR(32)) DISTRIBUTED BY HASH(id) BUCKETS 15 PROPERTIES ("replication_num" = "1")`,
		"INSERT INTO demo.cargo VALUES " + strings.Join(values, ", "),
	} {
		if _, err := d.SQL(ctx, s); err != nil {
			t.Fatalf("%.60s: %v", s, err)
		}
	}
	if held := l.tablets(ctx, "doris-be-3") + l.tablets(ctx, "doris-be-4"); held == 0 {
		t.Fatal("the backends that are to leave hold nothing")
	} else {
		t.Logf("doris-be-3 and doris-be-4 hold %d tablets", held)
	}
	k := &kept{live: l, want: map[string]string{}}
	k.set(ctx, "be", 4, 6004)
	for range 2 {
		l.scale(ctx, "beSpec", 3)
		l.await(ctx, "members leave", func() bool { return l.leaving(ctx, "beStatus") != "" })
		t.Logf("leaving: %s", l.leaving(ctx, "beStatus"))
		l.killOperator(ctx)
		l.members(ctx, "be", 3)
		l.rows(ctx)
		l.scale(ctx, "beSpec", 5)
		l.killOperator(ctx)
		l.members(ctx, "be", 5)
		l.rows(ctx)
		k.allThere(ctx, "a backend left and came back")
	}
	l.scale(ctx, "beSpec", 3)
	l.members(ctx, "be", 3)
	l.rows(ctx)
}

// observersComeAndGo does the same with frontends that have no vote. One that comes
// again on the volume of one that was taken out joins anew, with the settings that it had.
func observersComeAndGo(ctx context.Context, t *testing.T, d *demo.Demo) {
	t.Helper()
	l := live{T: t, Demo: d}
	l.scale(ctx, "feSpec", 5)
	l.members(ctx, "fe", 5)
	k := &kept{live: l, want: map[string]string{}}
	k.set(ctx, "fe", 4, 64)
	for range 2 {
		l.scale(ctx, "feSpec", 3)
		l.await(ctx, "the operator has written down who leaves", func() bool {
			out, err := d.Kubectl(ctx, "get", "statefulset", demo.Name+"-fe", "-n", demo.Namespace, "-o", "yaml")
			return err == nil && (strings.Contains(out, "fairlead.dev/leaving") || strings.Contains(out, "  replicas: 3\n"))
		})
		l.killOperator(ctx)
		l.members(ctx, "fe", 3)
		l.scale(ctx, "feSpec", 5)
		l.killOperator(ctx)
		l.members(ctx, "fe", 5)
		aside := l.kubectl(ctx, "exec", "-n", demo.Namespace, demo.Name+"-fe-4", "-c", "fe", "--", "ls", "-A", "/opt/apache-doris/fe/doris-meta")
		if !strings.Contains(aside, ".retired-") {
			t.Errorf("the old metadata of fe-4 is not put aside: %s", aside)
		}
		k.allThere(ctx, "an observer left and came back")
	}
	l.scale(ctx, "feSpec", 3)
	l.members(ctx, "fe", 3)
	l.rows(ctx)
}

func (l live) scale(ctx context.Context, component string, n int) {
	l.Helper()
	began := time.Now()
	l.kubectl(ctx, "patch", "dcr", demo.Name, "-n", demo.Namespace, "--type=merge", "-p", fmt.Sprintf(`{"spec":{%q:{"replicas":%d}}}`, component, n))
	l.Cleanup(func() { l.Logf("%s was scaled to %d at %s", component, n, began.Format(time.TimeOnly)) })
}

// members waits until there are n Pods of a component, and n members that are alive
// and no others, and the cluster is ready.
func (l live) members(ctx context.Context, kind string, n int) {
	l.Helper()
	began := time.Now()
	var want []string
	for i := range n {
		want = append(want, fmt.Sprintf("%s-%s-%d", demo.Name, kind, i))
	}
	what := map[string]string{"be": "BACKENDS", "fe": "FRONTENDS"}[kind]
	l.await(ctx, fmt.Sprintf("%d of %s", n, what), func() bool {
		var alive []string
		for _, row := range l.show(ctx, what) {
			if row["Alive"] != "true" || row["SystemDecommissioned"] == "true" {
				return false
			}
			pod, _, _ := strings.Cut(row["Host"], ".")
			alive = append(alive, pod)
		}
		slices.Sort(alive)
		out, err := l.Kubectl(ctx, "get", "pods", "-n", demo.Namespace, "-l", "app.kubernetes.io/component="+kind, "-o", "jsonpath={.items[*].metadata.name}")
		ready, _ := l.Kubectl(ctx, "get", "dcr", demo.Name, "-n", demo.Namespace, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
		return err == nil && ready == "True" && cmp.Equal(want, alive) && cmp.Equal(want, strings.Fields(out))
	})
	l.Logf("%d %s after %s", n, what, time.Since(began).Round(time.Second))
}

// show reads a table by the names of its columns.
func (l live) show(ctx context.Context, what string) []map[string]string {
	out, err := l.Kubectl(ctx, "exec", "-n", demo.Namespace, demo.Name+"-fe-0", "-c", "fe", "--",
		"mysql", "-h", demo.Name+"-fe-service", "-P", "9030", "-uroot", "--batch", "-e", "SHOW "+what)
	if err != nil {
		return nil
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	names := strings.Split(lines[0], "\t")
	var rows []map[string]string
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, value := range strings.Split(line, "\t") {
			row[names[i]] = value
		}
		rows = append(rows, row)
	}
	return rows
}

func (l live) tablets(ctx context.Context, pod string) int {
	for _, row := range l.show(ctx, "BACKENDS") {
		if strings.HasPrefix(row["Host"], pod+".") {
			n, _ := strconv.Atoi(row["TabletNum"])
			return n
		}
	}
	return 0
}

// rows holds that every row that was written is there.
func (l live) rows(ctx context.Context) {
	l.Helper()
	rows, err := l.SQL(ctx, "SELECT COUNT(*) FROM demo.cargo")
	if err != nil || rows[0] != strconv.Itoa(cargoRows) {
		l.Fatalf("%d rows were written, and there are %v: %v", cargoRows, rows, err)
	}
}

func (l live) leaving(ctx context.Context, component string) string {
	out, err := l.Kubectl(ctx, "get", "dcr", demo.Name, "-n", demo.Namespace, "-o", "jsonpath={.status."+component+".leavingInstances}")
	if err != nil || out == "[]" {
		return ""
	}
	return out
}

func (l live) killOperator(ctx context.Context) {
	l.Helper()
	l.kubectl(ctx, "delete", "pod", "-n", "fairlead-system", "-l", "app.kubernetes.io/name=fairlead", "--grace-period=0", "--force")
}
