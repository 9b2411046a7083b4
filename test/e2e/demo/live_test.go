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

const slowLog = "qe_slow_log_ms"

// settingOutlivesContainer changes a setting of the frontends under the policy
// Auto: no Pod and no container is another one afterwards, the new value is in
// force on each, and again after a container was killed.
func settingOutlivesContainer(ctx context.Context, t *testing.T, d *demo.Demo) {
	t.Helper()
	l := live{T: t, Demo: d}
	l.kubectl(ctx, "create", "configmap", "fe-conf", "-n", demo.Namespace, "--from-literal=fe.conf="+feConf("7001"))
	l.kubectl(ctx, "patch", "dcr", demo.Name, "-n", demo.Namespace, "--type=merge", "-p",
		`{"spec":{"configUpdatePolicy":"Auto","feSpec":{"configMapInfo":{"configMapName":"fe-conf"}}}}`)
	l.await(ctx, "the frontends start with the file", func() bool { return l.inForce(ctx, "7001") })
	if err := d.AwaitReady(ctx, 3*time.Minute); err != nil {
		t.Fatal(err)
	}
	before := l.containers(ctx)
	l.kubectl(ctx, "patch", "configmap", "fe-conf", "-n", demo.Namespace, "--type=merge", "-p", fmt.Sprintf(`{"data":{"fe.conf":%q}}`, feConf("7002")))
	l.await(ctx, "the new value is in force", func() bool { return l.inForce(ctx, "7002") && l.inSync(ctx) })
	if diff := cmp.Diff(before, l.containers(ctx)); diff != "" {
		t.Errorf("Pods or containers changed (-before +after):\n%s", diff)
	}
	const killed = demo.Name + "-fe-1"
	_, _ = d.Kubectl(ctx, "exec", "-n", demo.Namespace, killed, "-c", "fe", "--", "/opt/apache-doris/fe/bin/stop_fe.sh") // it ends with the container
	l.await(ctx, "the container is another one", func() bool { return l.containers(ctx) != before })
	l.await(ctx, "the value is in force again", func() bool { return l.inForce(ctx, "7002") && l.inSync(ctx) })
	if diff := cmp.Diff(uids(before), uids(l.containers(ctx))); diff != "" {
		t.Errorf("Pods changed (-before +after):\n%s", diff)
	}
}

func feConf(value string) string {
	return "enable_fqdn_mode = true\n" + slowLog + " = " + value + "\n"
}

// live is the demonstration with what this story asks of it.
type live struct {
	*testing.T
	*demo.Demo
}

func (l live) kubectl(ctx context.Context, args ...string) string {
	l.Helper()
	out, err := l.Kubectl(ctx, args...)
	if err != nil {
		l.Fatal(err)
	}
	return out
}

// containers lists the frontends' Pods with their UIDs and containers.
func (l live) containers(ctx context.Context) string {
	l.Helper()
	return l.kubectl(ctx, "get", "pods", "-n", demo.Namespace, "-l", "app.kubernetes.io/component=fe", "-o",
		"jsonpath={range .items[*]}{.metadata.name} {.metadata.uid} {.status.containerStatuses[0].containerID}{\"\\n\"}{end}")
}

// uids leaves the containers out of a list of them.
func uids(containers string) string {
	var out strings.Builder
	for line := range strings.Lines(containers) {
		if f := strings.Fields(line); len(f) > 1 {
			out.WriteString(f[0] + " " + f[1] + "\n")
		}
	}
	return out.String()
}

// inForce asks each frontend for the value.
func (l live) inForce(ctx context.Context, value string) bool {
	for n := range 3 {
		out, err := l.Kubectl(ctx, "exec", "-n", demo.Namespace, fmt.Sprintf("%s-fe-%d", demo.Name, n), "-c", "fe", "--",
			"mysql", "-h", "127.0.0.1", "-P", "9030", "-uroot", "--batch", "--skip-column-names", "-e", "ADMIN SHOW FRONTEND CONFIG LIKE '"+slowLog+"'")
		if f := strings.Fields(out); err != nil || len(f) < 2 || f[1] != value {
			return false
		}
	}
	return true
}

func (l live) inSync(ctx context.Context) bool {
	out, err := l.Kubectl(ctx, "get", "dcr", demo.Name, "-n", demo.Namespace, "-o", `jsonpath={.status.conditions[?(@.type=="ConfigurationInSync")].status}`)
	return err == nil && out == "True"
}

func (l live) await(ctx context.Context, what string, ok func() bool) {
	l.Helper()
	for deadline := time.Now().Add(8 * time.Minute); !ok(); time.Sleep(500 * time.Millisecond) {
		if time.Now().After(deadline) || ctx.Err() != nil {
			conditions, _ := l.Kubectl(ctx, "get", "dcr", demo.Name, "-n", demo.Namespace, "-o", "jsonpath={.status.conditions}")
			pods, _ := l.Kubectl(ctx, "get", "pods", "-n", demo.Namespace, "-o", "wide")
			logs, _ := l.Kubectl(ctx, "logs", "-n", "fairlead-system", "deployment/fairlead", "--tail=30")
			l.Fatalf("it never came: %s\n%s\n%s\n%s", what, conditions, pods, logs)
		}
	}
}
