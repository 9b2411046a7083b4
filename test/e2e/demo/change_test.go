package demo_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fairlead-dev/fairlead/internal/cli"
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

// largerDisks gives the backends larger disks: the set is made again once a person has
// approved it, the claims grow, and no Pod is another one. The cluster's own provisioner
// plays the resizer, a test double of the driver's part: a directory has no size.
func largerDisks(ctx context.Context, t *testing.T, d *demo.Demo) {
	t.Helper()
	l, began := live{T: t, Demo: d}, time.Now()
	before := l.pods(ctx)
	set := l.kubectl(ctx, "get", "statefulset", demo.Name+"-be", "-n", demo.Namespace, "-o", "jsonpath={.metadata.uid}")
	rows, err := d.CountRows(ctx)
	if err != nil {
		t.Fatal(err)
	}
	l.kubectl(ctx, "patch", "dcr", demo.Name, "-n", demo.Namespace, "--type=json", "-p",
		`[{"op":"replace","path":"/spec/beSpec/persistentVolumes/0/persistentVolumeClaimSpec/resources/requests/storage","value":"2Gi"}]`)
	var result []struct {
		HeldSets []struct {
			Approve string `json:"approve"`
		} `json:"heldSets"`
	}
	l.await(ctx, "larger disks are held", func() bool {
		out, err := l.plugin(ctx, "plan", "dcr", demo.Name, "-n", demo.Namespace, "-o", "json")
		return err == nil && json.Unmarshal([]byte(out), &result) == nil && len(result) == 1 && len(result[0].HeldSets) == 1
	})
	if out, err := l.plugin(ctx, "approve", "dcr", demo.Name, "--yes", "-n", demo.Namespace, result[0].HeldSets[0].Approve); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	l.await(ctx, "every claim is larger, and the set makes such", func() bool {
		sizes, err := l.Kubectl(ctx, "get", "pvc", "-n", demo.Namespace, "-l", "app.kubernetes.io/component=be", "-o", "jsonpath={.items[*].status.capacity.storage}")
		made, _ := l.Kubectl(ctx, "get", "statefulset", demo.Name+"-be", "-n", demo.Namespace, "-o", "jsonpath={.spec.volumeClaimTemplates[0].spec.resources.requests.storage}")
		return err == nil && made == "2Gi" && cmp.Equal(strings.Fields(sizes), []string{"2Gi", "2Gi", "2Gi"})
	})
	if err := d.AwaitReady(ctx, 2*time.Minute); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, l.pods(ctx)); diff != "" {
		t.Errorf("Pods or containers are others (-before +after):\n%s", diff)
	}
	if now := l.kubectl(ctx, "get", "statefulset", demo.Name+"-be", "-n", demo.Namespace, "-o", "jsonpath={.metadata.uid}"); now == set {
		t.Error("the set was not made again")
	}
	l.sameRows(ctx, rows)
	t.Logf("larger disks after %s", time.Since(began).Round(time.Second))
}

// plugin runs the plugin, in this process.
func (l live) plugin(ctx context.Context, args ...string) (string, error) {
	var out bytes.Buffer
	cmd := cli.Command(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out})
	cmd.SetArgs(append(args, "--kubeconfig", l.Cluster.Kubeconfig()))
	err := cmd.ExecuteContext(ctx)
	return out.String(), err
}
