package demo_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/test/demo"
)

// upgradedTo is the version of the images that the cluster is upgraded to.
const upgradedTo = "2.1.9"

// stream asks a frontend for rows again and again, until it is told to stop, and counts
// the answers that are right and those that are not.
const stream = `ok=0; bad=0; rm -f /tmp/stop /tmp/said
while [ ! -e /tmp/stop ]; do
  said=$(mysql -h 127.0.0.1 -P 9030 -uroot --batch --skip-column-names -e 'SELECT COUNT(*) FROM demo.ships' 2>&1)
  if [ "$said" = "$1" ]; then ok=$((ok+1)); else bad=$((bad+1)); echo "$said" >> /tmp/said; fi
  sleep 0.05
done
echo "$ok $bad"; head -c 2000 /tmp/said 2>/dev/null; true`

// upgradedUnderQueries gives the backends another image while queries go on, none of
// which fails, and then the frontends, whose master goes last.
func upgradedUnderQueries(ctx context.Context, t *testing.T, d *demo.Demo) {
	t.Helper()
	l := live{T: t, Demo: d}
	images := t.TempDir()
	if err := demo.BuildStandIn(ctx, d.Root, images, logged{t}, "--fe-tag", "apache/doris:fe-"+upgradedTo, "--be-tag", "apache/doris:be-"+upgradedTo); err != nil {
		t.Fatal(err)
	}
	archives, err := filepath.Glob(filepath.Join(images, "*.tar"))
	if err != nil || len(archives) == 0 {
		t.Fatalf("no images: %v", err)
	}
	for _, a := range archives {
		if err := d.Cluster.LoadImage(ctx, a); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.WriteCopies(ctx, 3); err != nil {
		t.Fatal(err)
	}
	rows, err := d.CountRows(ctx)
	if err != nil {
		t.Fatal(err)
	}
	answer := make(chan string, 1)
	go func() {
		out, err := d.Kubectl(ctx, "exec", "-n", demo.Namespace, demo.Name+"-fe-0", "-c", "fe", "--", "bash", "-c", stream, "stream", rows)
		answer <- fmt.Sprint(out, errText(err))
	}()
	l.image(ctx, "beSpec", "be")
	l.kubectl(ctx, "exec", "-n", demo.Namespace, demo.Name+"-fe-0", "-c", "fe", "--", "touch", "/tmp/stop")
	said := <-answer
	t.Logf("queries during the roll of the backends, right and wrong: %s", said)
	var right, wrong int
	if _, err := fmt.Sscan(said, &right, &wrong); err != nil || right < 100 || wrong > 0 {
		t.Errorf("%d queries were answered, %d failed: %s", right, wrong, said)
	}
	for _, row := range l.show(ctx, "BACKENDS") {
		if !strings.Contains(row["Status"], `"isQueryDisabled":false`) || !strings.Contains(row["Status"], `"isLoadDisabled":false`) {
			t.Errorf("%s has not got its work back: %s", row["Host"], row["Status"])
		}
	}
	if err := d.LosePod(ctx, demo.Name+"-fe-0"); err != nil { // the master, which would be the last by its number
		t.Fatal(err)
	}
	master := l.master(ctx)
	if master == "" || master == demo.Name+"-fe-0" {
		t.Fatalf("the master is %q", master)
	}
	broke := l.watchSessions(ctx)
	l.image(ctx, "feSpec", "fe")
	said = broke()
	t.Logf("how often a session on each frontend broke while all were replaced:\n%s", said)
	for n := range 3 {
		if host := fmt.Sprintf("%s-fe-%d.%s-fe-internal 1\n", demo.Name, n, demo.Name); !strings.Contains(said+"\n", host) {
			t.Errorf("want %q", host)
		}
	}
	started := strings.Fields(l.kubectl(ctx, "get", "pods", "-n", demo.Namespace, "-l", "app.kubernetes.io/component=fe",
		"--sort-by=.metadata.creationTimestamp", "-o", "jsonpath={.items[*].metadata.name}"))
	if len(started) == 0 || started[len(started)-1] != master {
		t.Errorf("%s was the master, and the frontends went as %v", master, started)
	}
	t.Logf("%s was the master, and the frontends went as %v", master, started)
	l.metadataIsThere(ctx, master)
	l.sameRows(ctx, rows)
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

// metadataIsThere looks for the file that the master wrote before frontends were
// replaced, on the volume that its next Pod has.
func (l live) metadataIsThere(ctx context.Context, master string) {
	l.Helper()
	var record struct {
		Pod  string `json:"pod"`
		File string `json:"file"`
	}
	text := l.kubectl(ctx, "get", "statefulset", demo.Name+"-fe", "-n", demo.Namespace, "-o", `jsonpath={.metadata.annotations.fairlead\.dev/metadata-dump}`)
	if err := json.Unmarshal([]byte(text), &record); err != nil || record.Pod != master {
		l.Fatalf("%s was the master, and the record of its metadata is %q (%v)", master, text, err)
	}
	if out := l.kubectl(ctx, "exec", "-n", demo.Namespace, record.Pod, "-c", "fe", "--", "cat", record.File); !strings.Contains(out, "ships") {
		l.Errorf("%s of %s does not hold the metadata: %.200s", record.File, record.Pod, out)
	}
}

// image gives a component the new image and waits until all its Pods have it.
func (l live) image(ctx context.Context, component, kind string) {
	l.Helper()
	began, image := time.Now(), "apache/doris:"+kind+"-"+upgradedTo
	l.kubectl(ctx, "patch", "dcr", demo.Name, "-n", demo.Namespace, "--type=merge", "-p", fmt.Sprintf(`{"spec":{%q:{"image":%q}}}`, component, image))
	l.await(ctx, "every Pod has the image "+image, func() bool {
		out, err := l.Kubectl(ctx, "get", "pods", "-n", demo.Namespace, "-l", "app.kubernetes.io/component="+kind, "-o", "jsonpath={.items[*].spec.containers[0].image}")
		ready, _ := l.Kubectl(ctx, "get", "dcr", demo.Name, "-n", demo.Namespace, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
		return err == nil && ready == "True" && cmp.Equal(strings.Fields(out), []string{image, image, image})
	})
	l.Logf("%s after %s", image, time.Since(began).Round(time.Second))
}

func (l live) master(ctx context.Context) string {
	for _, row := range l.show(ctx, "FRONTENDS") {
		if row["IsMaster"] == "true" {
			pod, _, _ := strings.Cut(row["Host"], ".")
			return pod
		}
	}
	return ""
}

func (l live) sameRows(ctx context.Context, want string) {
	l.Helper()
	if n, err := l.CountRows(ctx); err != nil || n != want {
		l.Errorf("after the upgrade %s rows are there, %s before (%v)", n, want, err)
	}
}
