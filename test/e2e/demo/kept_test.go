package demo_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fairlead-dev/fairlead/internal/cli"
	"github.com/fairlead-dev/fairlead/test/demo"
)

// kept are settings that were changed in running nodes, and have to outlive them.
type kept struct {
	live
	// want is the value on each Pod.
	want map[string]string
	// namespace is where they are; that of the demonstration where it is empty.
	namespace string
	// looks counts how often a setting was looked for after something had happened.
	looks int
}

// keptSetting is the setting of a component that the story changes.
var keptSetting = map[string]string{"fe": "query_metadata_name_ids_timeout", "be": "streaming_load_max_mb"}

// settingsChanged changes a setting of each node with the calls that Doris has for it.
// Two nodes are killed while they write one down.
func settingsChanged(ctx context.Context, t *testing.T, d *demo.Demo) *kept {
	t.Helper()
	k := &kept{live: live{T: t, Demo: d}, want: map[string]string{}}
	for n := range 3 {
		k.set(ctx, "fe", n, 11+n)
		k.set(ctx, "be", n, 5000+n)
	}
	for _, kind := range []string{"be", "fe"} {
		k.killedWhileItWrites(ctx, kind)
	}
	return k
}

// goesOn is the story in another test.
func (k *kept) goesOn(t *testing.T) *kept {
	t.Helper()
	if k == nil {
		t.Skip("no settings were changed")
	}
	k.T = t
	return k
}

// setAgain has the StatefulSet of the backends deleted: the Pods of the one that is made
// in its place have the settings.
func (k *kept) setAgain(ctx context.Context) {
	k.Helper()
	before := k.uidsOf(ctx, "be")
	k.kubectl(ctx, "delete", "statefulset", demo.Name+"-be", "-n", demo.Namespace, "--wait=true")
	k.await(ctx, "all backends are other Pods", func() bool {
		now := k.uidsOf(ctx, "be")
		return len(now) == 3 && !slices.ContainsFunc(now, func(uid string) bool { return slices.Contains(before, uid) })
	})
	k.members(ctx, "be", 3)
	k.allThere(ctx, "the StatefulSet was deleted and made again")
}

// counted waits until the operator has seen what was changed, and holds that it misses
// nothing.
func (k *kept) counted(ctx context.Context) {
	k.Helper()
	k.await(ctx, "the operator counts the changed settings", func() bool {
		out, err := k.Kubectl(ctx, "get", "dcr", demo.Name, "-n", demo.Namespace, "-o", "jsonpath={.status.runtimeConfig.changedSettings} {.status.runtimeConfig.changedNodes}")
		return err == nil && out == fmt.Sprintf("2 %d", len(k.want))
	})
	observed := k.kubectl(ctx, "get", "configmap", demo.Name+"-observed", "-n", demo.Namespace, "-o", "jsonpath={.data}")
	for pod := range k.want {
		if !strings.Contains(observed, pod) {
			k.Errorf("of %s nothing is recorded: %s", pod, observed)
		}
	}
	if lost := k.kubectl(ctx, "get", "dcr", demo.Name, "-n", demo.Namespace, "-o", `jsonpath={.status.conditions[?(@.type=="RuntimeConfigurationLost")].message}`); strings.Contains(lost, "-be-") {
		k.Errorf("no backend has lost anything, and it is said: %s", lost)
	}
}

func (k *kept) uidsOf(ctx context.Context, kind string) []string {
	out, err := k.Kubectl(ctx, "get", "pods", "-n", demo.Namespace, "-l", "app.kubernetes.io/component="+kind, "-o", "jsonpath={.items[*].metadata.uid}")
	if err != nil {
		return nil
	}
	return strings.Fields(out)
}

// set changes the setting of a node and has it keep that.
func (k *kept) set(ctx context.Context, kind string, n, value int) {
	k.Helper()
	pod := fmt.Sprintf("%s-%s-%d", demo.Name, kind, n)
	out := k.kubectl(ctx, "exec", "-n", demo.Namespace, pod, "-c", kind, "--", "bash", "-c", setOnce[kind], "set", keptSetting[kind], strconv.Itoa(value))
	if !strings.Contains(out, "OK") && !strings.Contains(out, `"persist":"Written"`) {
		k.Fatalf("%s does not take %d: %s", pod, value, out)
	}
	k.want[pod] = strconv.Itoa(value)
}

// setOnce are the calls by which nodes change a setting and write it down.
var setOnce = map[string]string{
	"fe": `curl -sS -u root: "http://127.0.0.1:8030/api/_set_config?$1=$2&persist=true&reset_persist=false"`,
	"be": `curl -sS -X POST "http://127.0.0.1:8040/api/update_config?$1=$2&persist=true"`,
}

// has is what a node says of its setting; empty where it does not answer.
func (k *kept) has(ctx context.Context, pod string) string {
	kind := strings.Split(pod, "-")[1]
	script := `curl -sS http://127.0.0.1:8040/varz | grep "^$1=" | cut -d= -f2`
	if kind == "fe" {
		script = `mysql -h 127.0.0.1 -P 9030 -uroot --batch --skip-column-names -e "ADMIN SHOW FRONTEND CONFIG LIKE '$1'" | cut -f2`
	}
	out, err := k.Kubectl(ctx, "exec", "-n", cmp.Or(k.namespace, demo.Namespace), pod, "-c", kind, "--", "bash", "-c", script, "has", keptSetting[kind])
	if err != nil {
		return ""
	}
	return strings.TrimSpace(out)
}

// allThere holds that every node has its setting.
func (k *kept) allThere(ctx context.Context, after string) {
	k.Helper()
	for pod := range k.want {
		k.there(ctx, pod, after)
	}
	k.Logf("%s: settings were looked for %d times by now", after, k.looks)
}

// there holds that a node has its setting.
func (k *kept) there(ctx context.Context, pod, after string) {
	k.Helper()
	got := ""
	k.await(ctx, pod+" answers", func() bool { got = k.has(ctx, pod); return got != "" })
	if k.looks++; got != k.want[pod] {
		k.Errorf("%s: %s has %q, and %q was set", after, pod, got, k.want[pod])
	}
}

// writing changes a setting again and again, and tells each value that the node has
// taken. The process is killed a while after it took the first.
const writing = `rm -f /tmp/took
(until [ -e /tmp/took ]; do sleep 0.1; done; sleep 1; kill -9 "$(cat /opt/apache-doris/$3/bin/$3.pid)") >/dev/null 2>&1 &
for ((i = 0; i < 100000; i++)); do
  said=$(%s 2>&1) || break
  echo "took $2"
  : > /tmp/took
  set -- "$1" $(($2 + 1)) "$3"
done`

// killedWhileItWrites kills a node that is writing a setting down. Afterwards it has the
// last value that it took, or the one that it was about to take (of the very last ones the
// container may have ended before it told). A frontend writes in place, so its file may be
// cut short: then it has none.
func (k *kept) killedWhileItWrites(ctx context.Context, kind string) {
	k.Helper()
	pod := demo.Name + "-" + kind + "-2"
	first, _ := strconv.Atoi(k.want[pod])
	out, _ := k.Kubectl(ctx, "exec", "-n", demo.Namespace, pod, "-c", kind, "--", "bash", "-c", fmt.Sprintf(writing, setOnce[kind]), "writing", keptSetting[kind], strconv.Itoa(first+1), kind) // it ends with the container
	took := first + strings.Count(out, "took ")
	if took == first {
		k.Fatalf("%s took nothing: %s", pod, out)
	}
	if err := k.AwaitReady(ctx, 3*time.Minute); err != nil {
		k.Fatal(err)
	}
	got := ""
	k.await(ctx, pod+" answers again", func() bool { got = k.has(ctx, pod); return got != "" })
	k.Logf("%s took %d values until it was killed, the last was %d; it has %s", pod, took-first, took, got)
	k.looks++
	switch has, err := strconv.Atoi(got); {
	case err == nil && has >= took && has <= took+untold:
		k.want[pod] = got
	case kind == "fe":
		k.Logf("the file of %s was cut short: this is what a frontend may lose", pod)
		k.set(ctx, kind, 2, took)
	default:
		k.Errorf("%s has %s after the kill, and took %d", pod, got, took)
	}
}

// torn has a frontend killed in the middle of writing its file, which it truncates: it comes
// back without its setting and is named with it, and nobody else has lost anything. It is
// told no more when a person knows of it, and all is as before when it is set again.
func (k *kept) torn(ctx context.Context) {
	k.Helper()
	const pod = demo.Name + "-fe-1"
	had, _ := strconv.Atoi(k.want[pod])
	const killed = `curl -sS -X POST "http://127.0.0.1:8030/dorissim/fault?kind=torn-write" && `
	out, err := k.Kubectl(ctx, "exec", "-n", demo.Namespace, pod, "-c", "fe", "--", "bash", "-c", killed+setOnce["fe"], "set", keptSetting["fe"], strconv.Itoa(had+1))
	if err == nil {
		k.Fatalf("%s was to be killed while it writes, and says %s", pod, out)
	}
	k.await(ctx, pod+" is named", func() bool { return strings.Contains(k.lost(ctx), pod+": "+keptSetting["fe"]) })
	k.Logf("%s", k.lost(ctx))
	if got := k.has(ctx, pod); got == k.want[pod] {
		k.Errorf("the file of %s was cut short, and it has %q", pod, got)
	}
	left := k.kubectl(ctx, "exec", "-n", demo.Namespace, pod, "-c", "fe", "--", "bash", "-c", "cat /var/lib/doris/runtime-config/fe_custom.conf")
	if strings.TrimSpace(left) != "" {
		k.Errorf("the file of %s holds %q", pod, left)
	}
	delete(k.want, pod)
	k.allThere(ctx, "the file of "+pod+" was cut short")
	k.plugin(ctx, []string{"runtime-config", "status", "dcr/" + demo.Name}, pod, "cut short", "fe_custom.conf is empty", "known before: "+keptSetting["fe"])
	_, known, _ := strings.Cut(k.lost(ctx), "fairlead.dev/lost-settings-known=")
	k.kubectl(ctx, "annotate", "dcr", demo.Name, "-n", demo.Namespace, "--overwrite", "fairlead.dev/lost-settings-known="+known)
	k.await(ctx, "what is known is not told", func() bool { return !strings.Contains(k.lost(ctx), pod) })
	k.set(ctx, "fe", 1, had+1)
	k.there(ctx, pod, "set again")
	values := k.plugin(ctx, []string{"explain", "dcr/" + demo.Name, keptSetting["fe"], "--values"}, "In force, as the nodes say now")
	values += k.plugin(ctx, []string{"explain", "dcr/" + demo.Name, "--values", "-o", "wide"}, "streaming_load_max_mb", "custom_config_dir", "qe_slow_log_ms")
	for pod, value := range k.want {
		if !regexp.MustCompile(pod + ` +` + keptSetting[strings.Split(pod, "-")[1]] + ` +` + value + `\n`).MatchString(values) {
			k.Errorf("explain --values does not say that %s has %s:\n%s", pod, value, values)
		}
	}
	k.plugin(ctx, []string{"runtime-config", "status", "dcr/" + demo.Name}, pod, "kept")
}

// lost is what the cluster says of lost settings.
func (k *kept) lost(ctx context.Context) string {
	out, err := k.Kubectl(ctx, "get", "dcr", demo.Name, "-n", demo.Namespace, "-o", `jsonpath={.status.conditions[?(@.type=="RuntimeConfigurationLost")].message}`)
	if err != nil {
		return ""
	}
	return out
}

// plugin runs a verb of the plugin, which has to succeed and to say these words.
func (k *kept) plugin(ctx context.Context, args []string, says ...string) string {
	k.Helper()
	ctrllog.SetLogger(logr.Discard()) // of the plugin, which runs in here
	var out, errs bytes.Buffer
	cmd := cli.Command(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errs})
	cmd.SetArgs(append([]string{"--kubeconfig", k.Cluster.Kubeconfig(), "-n", demo.Namespace}, args...))
	if err := cmd.ExecuteContext(ctx); err != nil {
		k.Errorf("kubectl fairlead %s: %v\n%s%s", strings.Join(args, " "), err, &out, &errs)
	}
	for _, part := range says {
		if !strings.Contains(out.String(), part) {
			k.Errorf("kubectl fairlead %s does not say %q:\n%s%s", strings.Join(args, " "), part, &out, &errs)
		}
	}
	return out.String()
}

// untold is how many values a node may have taken that nobody heard of.
const untold = 20
