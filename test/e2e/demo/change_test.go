package demo_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/test/demo"
)

// sessions keeps one session open on each host that is named, and prints how often each
// broke until it is told to stop.
const sessions = `rm -f /tmp/stop-sessions /tmp/broken
for host in "$@"; do (
  broke=0
  sql="mysql -h $host -P 9030 -uroot --batch --skip-column-names --skip-reconnect --connect-timeout=2"
  while [ ! -e /tmp/stop-sessions ]; do
    if ! $sql -e 'SELECT COUNT(*) FROM demo.ships' >/dev/null 2>&1; then sleep 0.2; continue; fi
    (while [ ! -e /tmp/stop-sessions ]; do echo 'SHOW DATABASES;'; sleep 0.2; done) | $sql >/dev/null 2>&1 || broke=$((broke+1))
  done
  echo "$host $broke" >> /tmp/broken
) & done
wait; sort /tmp/broken`

// watchSessions opens a session on each frontend, from the Pod of a backend. What it
// returns ends them, and tells how often each broke.
func (l live) watchSessions(ctx context.Context) (broke func() string) {
	l.Helper()
	args := []string{"exec", "-n", demo.Namespace, demo.Name + "-be-0", "-c", "be", "--", "bash", "-c", sessions, "sessions"}
	for n := range 3 {
		args = append(args, fmt.Sprintf("%s-fe-%d.%s-fe-internal", demo.Name, n, demo.Name))
	}
	answer := make(chan string, 1)
	go func() {
		out, err := l.Kubectl(ctx, args...)
		answer <- out + errText(err)
	}()
	return func() string {
		l.kubectl(ctx, "exec", "-n", demo.Namespace, demo.Name+"-be-0", "-c", "be", "--", "touch", "/tmp/stop-sessions")
		return <-answer
	}
}

// pods lists the backends' Pods with their UIDs and how often their containers
// restarted.
func (l live) pods(ctx context.Context) []string {
	l.Helper()
	return strings.Fields(l.kubectl(ctx, "get", "pods", "-n", demo.Namespace, "-l", "app.kubernetes.io/component=be", "-o",
		"jsonpath={range .items[*]}{.metadata.name}/{.metadata.uid}/{.status.containerStatuses[0].restartCount} {end}"))
}

func (l live) patch(ctx context.Context, spec string) {
	l.Helper()
	l.kubectl(ctx, "patch", "dcr", demo.Name, "-n", demo.Namespace, "--type=merge", "-p", `{"spec":`+spec+`}`)
}

// badImageStopsAtOnePod gives the backends an image that there is not: one Pod has it and
// queries go on; mended, the roll goes on by itself.
func badImageStopsAtOnePod(ctx context.Context, t *testing.T, d *demo.Demo) {
	t.Helper()
	l, began := live{T: t, Demo: d}, time.Now()
	before := l.pods(ctx)
	image := l.kubectl(ctx, "get", "dcr", demo.Name, "-n", demo.Namespace, "-o", "jsonpath={.spec.beSpec.image}")
	rows, err := d.CountRows(ctx)
	if err != nil {
		t.Fatal(err)
	}
	l.patch(ctx, `{"beSpec":{"image":"apache/doris:be-2.1.10-none"}}`)
	l.await(ctx, "the roll stops", func() bool {
		out, err := l.Kubectl(ctx, "get", "dcr", demo.Name, "-n", demo.Namespace, "-o", `jsonpath={.status.conditions[?(@.type=="Stalled")].reason}`)
		return err == nil && out == "MemberFailed"
	})
	if diff := cmp.Diff(before[:2], l.pods(ctx)[:2]); diff != "" {
		t.Errorf("other Pods than the last one changed (-before +after):\n%s", diff)
	}
	l.sameRows(ctx, rows)
	l.patch(ctx, fmt.Sprintf(`{"beSpec":{"image":%q}}`, image))
	if err := d.AwaitReady(ctx, 3*time.Minute); err != nil {
		t.Fatal(err)
	}
	l.await(ctx, "the Pod that failed is another one", func() bool {
		now := l.pods(ctx)
		return len(now) == 3 && cmp.Equal(before[:2], now[:2]) && now[2] != before[2]
	})
	l.sameRows(ctx, rows)
	t.Logf("stopped at one Pod, mended, after %s", time.Since(began).Round(time.Second))
}

// memoryWithoutRestart raises the memory of backends that run.
func memoryWithoutRestart(ctx context.Context, t *testing.T, d *demo.Demo) {
	t.Helper()
	l, began := live{T: t, Demo: d}, time.Now()
	has := func(size string) bool {
		out, err := l.Kubectl(ctx, "get", "pods", "-n", demo.Namespace, "-l", "app.kubernetes.io/component=be", "-o",
			"jsonpath={.items[*].status.containerStatuses[0].resources.requests.memory}")
		ready, _ := l.Kubectl(ctx, "get", "dcr", demo.Name, "-n", demo.Namespace, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
		return err == nil && ready == "True" && cmp.Equal(strings.Fields(out), []string{size, size, size})
	}
	l.patch(ctx, `{"beSpec":{"requests":{"memory":"64Mi"}}}`)
	l.await(ctx, "every backend asks for memory", func() bool { return has("64Mi") })
	before := l.pods(ctx)
	l.patch(ctx, `{"beSpec":{"requests":{"memory":"96Mi"},"limits":{"memory":"320Mi"}}}`)
	l.await(ctx, "every backend has more memory", func() bool { return has("96Mi") })
	if diff := cmp.Diff(before, l.pods(ctx)); diff != "" {
		t.Errorf("Pods or containers are others (-before +after):\n%s", diff)
	}
	t.Logf("%v after %s", l.pods(ctx), time.Since(began).Round(time.Second))
}
