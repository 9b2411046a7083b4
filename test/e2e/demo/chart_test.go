package demo_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fairlead-dev/fairlead/test/cluster/audit"
	"github.com/fairlead-dev/fairlead/test/demo"
)

// charted is the demonstration as the person sees it who keeps the operator.
type charted struct {
	live
	chart string
	// before are the Pods of the database, which nothing here may touch.
	before string
}

// chartUnderARunningCluster upgrades, kills, doubles and uninstalls the release
// while the database runs. The operator is gone and installed again afterwards.
func chartUnderARunningCluster(ctx context.Context, t *testing.T, d *demo.Demo) {
	t.Helper()
	ctrllog.SetLogger(logr.Discard()) // of the plugin, which runs in here
	c := charted{live: live{T: t, Demo: d}, chart: filepath.Join(d.Root, "charts", "fairlead")}
	mark, err := d.Cluster.Audit().Mark()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.WriteRows(ctx); err != nil {
		t.Fatal(err)
	}
	rows, err := d.CountRows(ctx)
	if err != nil {
		t.Fatal(err)
	}
	c.before = c.members(ctx)

	c.upgrade(ctx, "replicas=2", "watchNamespaces={"+demo.Namespace+"}", "operatorDeployment.annotations.of=deployment")
	c.reloads(ctx)
	c.failsOver(ctx)
	c.restarts(ctx)
	c.second(ctx)
	c.mayDoAll(mark)
	c.goes(ctx, rows)
}

// helm runs Helm, which has to succeed.
func (c charted) helm(ctx context.Context, args ...string) {
	c.Helper()
	if _, err := c.Helm(ctx, append(args, "-n", demo.SystemNamespace)...); err != nil {
		c.Fatal(err)
	}
}

// upgrade upgrades the release with some more values, and waits until it is
// rolled out.
func (c charted) upgrade(ctx context.Context, sets ...string) {
	c.Helper()
	args := []string{"upgrade", "fairlead", c.chart, "--reuse-values"}
	for _, s := range sets {
		args = append(args, "--set", s)
	}
	c.helm(ctx, args...)
	c.rolled(ctx, "fairlead")
}

func (c charted) rolled(ctx context.Context, deployment string) {
	c.Helper()
	c.kubectl(ctx, "rollout", "status", "deployment/"+deployment, "-n", demo.SystemNamespace, "--timeout=180s")
	c.await(ctx, "Pods that were replaced are gone", func() bool {
		return !strings.Contains(c.kubectl(ctx, "get", "pods", "-n", demo.SystemNamespace, "-o", "jsonpath={.items[*].metadata.deletionTimestamp}"), "T")
	})
	if diff := cmp.Diff(c.before, c.members(ctx)); diff != "" {
		c.Fatalf("the database notices (-before +after):\n%s", diff)
	}
}

func (c charted) members(ctx context.Context) string {
	c.Helper()
	return c.kubectl(ctx, "get", "pods", "-n", demo.Namespace, "-o",
		"jsonpath={range .items[*]}{.metadata.name} {.metadata.uid} {.status.containerStatuses[*].restartCount}{\"\\n\"}{end}")
}

// operators are the uids of the Pods of the release, sorted.
func (c charted) operators(ctx context.Context) []string {
	c.Helper()
	uids := strings.Fields(c.kubectl(ctx, "get", "pods", "-n", demo.SystemNamespace, "-l", "app.kubernetes.io/instance=fairlead", "-o", "jsonpath={.items[*].metadata.uid}"))
	slices.Sort(uids)
	return uids
}

func (c charted) checksum(ctx context.Context, deployment string) string {
	c.Helper()
	return c.kubectl(ctx, "get", "deployment", deployment, "-n", demo.SystemNamespace, "-o", `jsonpath={.spec.template.metadata.annotations.checksum/config}`)
}

// plugin runs the kubectl plugin and returns its words, one space between them.
func (c charted) plugin(ctx context.Context, args ...string) string {
	c.Helper()
	out, err := c.live.plugin(ctx, args...)
	if err != nil {
		return err.Error()
	}
	return strings.Join(strings.Fields(out), " ")
}

func (c charted) tells(ctx context.Context, verb, text string) {
	c.Helper()
	deadline := time.Now().Add(5 * time.Minute)
	for {
		last := c.plugin(ctx, strings.Fields(verb)...)
		if strings.Contains(last, text) {
			return
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			c.Fatalf("kubectl fairlead %s does not say %q:\n%s", verb, text, last)
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// reloads changes the configuration alone: no Pod is replaced, what is dynamic is in
// force, what is not is named.
func (c charted) reloads(ctx context.Context) {
	c.Helper()
	pods := c.operators(ctx)
	if len(pods) != 2 {
		c.Fatalf("there are %d Pods of the operator, not 2", len(pods))
	}
	c.upgrade(ctx, "logging.level=debug", "workers=4")
	// The kubelet looks after a Pod that changes, and refreshes its volumes, at once.
	c.kubectl(ctx, "annotate", "pods", "-n", demo.SystemNamespace, "-l", "app.kubernetes.io/instance=fairlead", "looked-at=now", "--overwrite")
	c.tells(ctx, "status operator", "Needs restart workers is 16, and 4 in the file")
	c.tells(ctx, "explain operator", "logLevel dynamic debug file")
	if diff := cmp.Diff(pods, c.operators(ctx)); diff != "" {
		c.Errorf("the toggle is off, and Pods are replaced (-before +after):\n%s", diff)
	}
	if sum := c.checksum(ctx, "fairlead"); sum != "" {
		c.Errorf("the toggle is off, and there is a checksum %s", sum)
	}
	if got := c.kubectl(ctx, "get", "deployment", "fairlead", "-n", demo.SystemNamespace, "-o", "jsonpath={.metadata.annotations.of} {.spec.template.metadata.annotations.of}"); got != "deployment " {
		c.Errorf("the annotation of Deployment and Pod: %q", got)
	}
}

func (c charted) leader(ctx context.Context) string {
	c.Helper()
	holder := c.kubectl(ctx, "get", "lease", "fairlead", "-n", demo.SystemNamespace, "-o", "jsonpath={.spec.holderIdentity}")
	pod, _, _ := strings.Cut(holder, "_")
	return pod
}

// failsOver kills the leader: the other one leads, tells of itself, and works.
func (c charted) failsOver(ctx context.Context) {
	c.Helper()
	old := c.leader(ctx)
	c.kubectl(ctx, "delete", "pod", old, "-n", demo.SystemNamespace, "--grace-period=0", "--force")
	c.await(ctx, "another one leads", func() bool { now := c.leader(ctx); return now != "" && now != old })
	c.tells(ctx, "status operator", "Leader "+c.leader(ctx)+" Configuration")
	c.kubectl(ctx, "patch", "dcr", demo.Name, "-n", demo.Namespace, "--type=merge", "-p", `{"spec":{"feSpec":{"service":{"annotations":{"told":"the-new-leader"}}}}}`)
	c.await(ctx, "the new leader carries out an edit", func() bool {
		return c.kubectl(ctx, "get", "service", demo.Name+"-fe-service", "-n", demo.Namespace, "-o", "jsonpath={.metadata.annotations.told}") == "the-new-leader"
	})
	c.rolled(ctx, "fairlead")
}

// restarts has the chart replace the Pods for a changed configuration, and for
// nothing else.
func (c charted) restarts(ctx context.Context) {
	c.Helper()
	first := c.operators(ctx)
	c.upgrade(ctx, "operatorPod.restartOnConfigChange=true")
	second, sum := c.operators(ctx), c.checksum(ctx, "fairlead")
	if sum == "" || slices.ContainsFunc(second, func(uid string) bool { return slices.Contains(first, uid) }) {
		c.Errorf("the toggle is on: checksum %q, Pods %v become %v", sum, first, second)
	}
	c.tells(ctx, "explain operator", "workers startup 4 file")
	c.upgrade(ctx)
	if diff := cmp.Diff(second, c.operators(ctx)); diff != "" || c.checksum(ctx, "fairlead") != sum {
		c.Errorf("identical values (-before +after):\n%s", diff)
	}
	c.upgrade(ctx, "workers=5")
	third := c.operators(ctx)
	if now := c.checksum(ctx, "fairlead"); now == sum || slices.ContainsFunc(third, func(uid string) bool { return slices.Contains(second, uid) }) {
		c.Errorf("changed again: checksum %q, Pods %v become %v", now, second, third)
	}
	c.tells(ctx, "explain operator", "workers startup 5 file")
}

const ownConfiguration = "apiVersion: config.fairlead.dev/v1alpha1\nkind: OperatorConfiguration\n"

const other = `apiVersion: doris.selectdb.com/v1
kind: DorisCluster
metadata: {name: small}
spec:
  feSpec: {replicas: 1, image: "apache/doris:fe-2.1.8"}
`

// second installs another release beside the first, for another namespace and
// with a ConfigMap that is not of the chart.
func (c charted) second(ctx context.Context) {
	c.Helper()
	c.kubectl(ctx, "create", "namespace", "lab")
	c.kubectl(ctx, "create", "configmap", "own", "-n", demo.SystemNamespace, "--from-literal=config.yaml="+ownConfiguration+"workers: 3\n")
	c.helm(ctx, "install", "second", c.chart, "--set", "watchNamespaces={lab}", "--set", "crds.install=false",
		"--set", "defaultConfiguration.create=false", "--set", "defaultConfiguration.existingConfigMap=own", "--set", "operatorPod.restartOnConfigChange=true")
	c.rolled(ctx, "second-fairlead")
	if sum := c.checksum(ctx, "second-fairlead"); sum != "" {
		c.Errorf("there is no ConfigMap of the chart, and a checksum %s", sum)
	}
	file := filepath.Join(c.TempDir(), "small.yaml")
	if err := os.WriteFile(file, []byte(other), 0o600); err != nil {
		c.Fatal(err)
	}
	c.kubectl(ctx, "apply", "-n", "lab", "-f", file)
	c.await(ctx, "the second release works in its namespace", func() bool {
		return strings.Contains(c.kubectl(ctx, "get", "pods", "-n", "lab", "-o", "jsonpath={.items[*].status.phase}"), "Running")
	})
	both := c.plugin(ctx, "status", "operator")
	for _, name := range []string{"/fairlead-operator", "/second-fairlead-operator"} {
		if !strings.Contains(both, demo.SystemNamespace+name) {
			c.Errorf("the plugin does not tell of %s:\n%s", name, both)
		}
	}
	c.refuses(ctx)
}

// refuses spoils the ConfigMap of the second release: it keeps what it had, and says so
// in the status and in an event of its Pod.
func (c charted) refuses(ctx context.Context) {
	c.Helper()
	c.tells(ctx, "explain operator", "workers startup 3 file")
	text, err := json.Marshal(map[string]any{"data": map[string]string{"config.yaml": ownConfiguration + "workers: many\n"}})
	if err != nil {
		c.Fatal(err)
	}
	c.kubectl(ctx, "patch", "configmap", "own", "-n", demo.SystemNamespace, "--type=merge", "-p", string(text))
	c.kubectl(ctx, "annotate", "pods", "-n", demo.SystemNamespace, "-l", "app.kubernetes.io/instance=second", "looked-at=now", "--overwrite")
	c.tells(ctx, "status operator", `config.yaml is refused; the former configuration stays in force /etc/fairlead/config.yaml:3: workers is "many"; write a whole number`)
	c.tells(ctx, "explain operator", "workers startup 3 file")
	c.await(ctx, "an event of the Pod tells of it", func() bool {
		return strings.Contains(c.kubectl(ctx, "get", "events", "-n", demo.SystemNamespace, "--field-selector", "reason=ConfigurationRefused", "-o", "jsonpath={.items[*].involvedObject.name} {.items[*].message}"), `workers is "many"`)
	})
}

// mayDoAll holds that the rights of the chart were enough, and that each release
// kept to its namespace.
func (c charted) mayDoAll(mark audit.Mark) {
	c.Helper()
	entries, err := c.Cluster.Audit().Since(mark)
	if err != nil {
		c.Fatal(err)
	}
	asked := map[string]int{}
	for _, e := range entries {
		account, ours := strings.CutPrefix(e.User, "system:serviceaccount:"+demo.SystemNamespace+":")
		if !ours {
			continue
		}
		asked[account]++
		if e.Code == 403 {
			c.Errorf("%s may not %s %s in %q: %s", account, e.Verb, e.Key().Resource, e.Namespace, e.Message)
		}
		if account == "second-fairlead" && e.Namespace == demo.Namespace || account == "fairlead" && e.Namespace == "lab" {
			c.Errorf("%s asks for %s in %s", account, e.Key().Resource, e.Namespace)
		}
	}
	if asked["fairlead"] == 0 || asked["second-fairlead"] == 0 {
		c.Errorf("the operators asked %v", asked)
	}
}

// goes uninstalls both releases and installs the first again: resources, Pods and
// rows stay.
func (c charted) goes(ctx context.Context, rows string) {
	c.Helper()
	c.helm(ctx, "uninstall", "second")
	c.helm(ctx, "uninstall", "fairlead")
	c.await(ctx, "the operators are gone", func() bool {
		return c.kubectl(ctx, "get", "pods", "-n", demo.SystemNamespace, "-o", "name") == ""
	})
	left := c.kubectl(ctx, "get", "dcr", "-A", "-o", "jsonpath={range .items[*]}{.metadata.name}{.metadata.deletionTimestamp} {end}")
	if names := strings.Fields(left); !slices.Contains(names, demo.Name) || !slices.Contains(names, "small") {
		c.Errorf("DorisClusters after uninstall: %q", left)
	}
	if n, err := c.CountRows(ctx); err != nil || n != rows {
		c.Errorf("%s rows before, %s after uninstall, %v", rows, n, err)
	}
	if err := c.InstallChart(ctx); err != nil {
		c.Fatal(err)
	}
	if err := c.AwaitReady(ctx, 2*time.Minute); err != nil {
		c.Fatal(err)
	}
	if diff := cmp.Diff(c.before, c.members(ctx)); diff != "" {
		c.Errorf("the database notices (-before +after):\n%s", diff)
	}
}
