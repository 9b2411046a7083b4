package takeover_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fairlead-dev/fairlead/internal/cli"
	"github.com/fairlead-dev/fairlead/test/demo"
)

// settingOf is the setting of a component that is changed at run time, and how Doris changes
// and tells it.
var settingOf = map[string]struct{ key, set, has string }{
	"fe": {
		"query_metadata_name_ids_timeout", `curl -sS -u root: "http://127.0.0.1:8030/api/_set_config?$1=$2&persist=true&reset_persist=false"`,
		`mysql -h 127.0.0.1 -P 9030 -uroot --batch --skip-column-names -e "ADMIN SHOW FRONTEND CONFIG LIKE '$1'" | cut -f2`,
	},
	"be": {
		"streaming_load_max_mb", `curl -sS -X POST "http://127.0.0.1:8040/api/update_config?$1=$2&persist=true"`,
		`curl -sS http://127.0.0.1:8040/varz | grep "^$1=" | cut -d= -f2`,
	},
}

// changed are the values that were set in each Pod.
var changed = map[string]string{demo.Name + "-fe-0": "4711", demo.Name + "-be-0": "5710", demo.Name + "-be-1": "5711"}

// migrates changes settings of the cluster that was taken over, which would be lost with its
// Pods, and migrates them: every Pod is another one afterwards, and no setting is lost. A Pod
// that is deleted after that has its settings too.
func (f *found) migrates(ctx context.Context) {
	f.Helper()
	ctrllog.SetLogger(logr.Discard()) // of the plugin, which runs in here
	for _, pod := range slices.Sorted(maps.Keys(changed)) {
		kind := strings.Split(pod, "-")[1]
		out := f.inPod(ctx, pod, settingOf[kind].set, settingOf[kind].key, changed[pod])
		if !strings.Contains(out, "OK") && !strings.Contains(out, `"persist":"Written"`) {
			f.Fatalf("%s does not take its setting: %s", pod, out)
		}
	}
	before, dir := f.pods(ctx), filepath.Join(f.TempDir(), "backup")
	f.plugin(ctx, dir, "status", "not backed up")
	f.plugin(ctx, dir, "backup", "3 files of 3 Pods")
	f.plugin(ctx, dir, "review", "streaming_load_max_mb", "query_metadata_name_ids_timeout", "Nothing keeps it")
	f.plugin(ctx, dir, "migrate", "Approved: the migration")
	f.await(ctx, "every Pod is another one", func(ctx context.Context) string {
		for name, was := range f.pods(ctx) {
			if strings.Fields(before[name])[0] == strings.Fields(was)[0] {
				return name + " is the same"
			}
		}
		return ""
	})
	f.await(ctx, "the cluster is settled", f.unsettled)
	f.there(ctx, "migrated")
	f.plugin(ctx, dir, "status", "is carried out", "migrated: 1 of 1 settings of the backup are there")
	_, err := f.Kubectl(ctx, "delete", "pod", "-n", demo.Namespace, demo.Name+"-be-0", demo.Name+"-fe-0", "--wait=true")
	f.must(err)
	f.await(ctx, "all Pods serve", f.notServing)
	f.await(ctx, "the cluster is settled", f.unsettled)
	f.there(ctx, "migrated, and Pods deleted after that")
	f.copyLost(ctx, dir)
}

// copyLost takes the copy of a backend from its volume, as a disk that is lost would: it does
// not start without it, says why, and starts when a person has said so on the volume.
func (f *found) copyLost(ctx context.Context, dir string) {
	f.Helper()
	const pod = demo.Name + "-be-1"
	var approval struct{ ID string }
	out, err := f.Kubectl(ctx, "get", "dcr", demo.Name, "-n", demo.Namespace, "-o", `jsonpath={.metadata.annotations.doris\.apache\.org/runtime-config-migration}`)
	f.must(err)
	f.must(json.Unmarshal([]byte(out), &approval))
	f.inPod(ctx, pod, "rm -rf /opt/apache-doris/be/storage/.doris-runtime-config/"+pod)
	_, err = f.Kubectl(ctx, "delete", "pod", "-n", demo.Namespace, pod, "--wait=true")
	f.must(err)
	f.await(ctx, pod+" does not start", func(ctx context.Context) string {
		said, err := f.Kubectl(ctx, "get", "pod", pod, "-n", demo.Namespace, "-o", `jsonpath={.status.initContainerStatuses[?(@.name=="runtime-config-init")]}`)
		if err != nil || !strings.Contains(said, "are not on the volume") {
			return fmt.Sprint(said, err)
		}
		return ""
	})
	f.await(ctx, "the cluster says why", func(ctx context.Context) string {
		said, err := f.Kubectl(ctx, "get", "dcr", demo.Name, "-n", demo.Namespace, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")]}`)
		if err != nil || !strings.Contains(said, pod+": runtime-config-init: ") || !strings.Contains(said, "are not on the volume") {
			return fmt.Sprint(said, err)
		}
		return ""
	})
	f.plugin(ctx, dir, "status", "the Pod is not ready", "are not on the volume")
	file := filepath.Join(f.TempDir(), "start-without.yaml")
	f.must(os.WriteFile(file, []byte(strings.NewReplacer("POD", pod, "IMAGE", newBackend, "ID", approval.ID).Replace(startWithout)), 0o600))
	_, err = f.Kubectl(ctx, "apply", "-n", demo.Namespace, "-f", file)
	f.must(err)
	f.await(ctx, "all Pods serve", f.notServing)
	f.await(ctx, "the cluster is settled", f.unsettled)
	if got := strings.TrimSpace(f.inPod(ctx, pod, settingOf["be"].has, settingOf["be"].key)); got == "" || got == changed[pod] {
		f.Errorf("%s starts without its settings, and has %q", pod, got)
	}
	f.inPod(ctx, pod, settingOf["be"].set, settingOf["be"].key, changed[pod])
	f.there(ctx, "a copy lost, and its setting set again")
}

// startWithout is what the guide says of a copy that is lost.
const startWithout = `
apiVersion: v1
kind: Pod
metadata: {name: start-without}
spec:
  restartPolicy: Never
  containers:
  - name: mark
    image: IMAGE
    command: [bash, -c]
    args: ["mkdir -p /volume/.doris-runtime-config/POD && : > /volume/.doris-runtime-config/POD/.migrated-ID"]
    volumeMounts: [{name: volume, mountPath: /volume}]
  volumes: [{name: volume, persistentVolumeClaim: {claimName: data-POD}}]
`

// there holds that every node has its setting.
func (f *found) there(ctx context.Context, after string) {
	f.Helper()
	for _, pod := range slices.Sorted(maps.Keys(changed)) {
		of, got := settingOf[strings.Split(pod, "-")[1]], ""
		f.await(ctx, pod+" answers", func(ctx context.Context) string {
			out, err := f.Kubectl(ctx, "exec", "-n", demo.Namespace, pod, "-c", strings.Split(pod, "-")[1], "--", "bash", "-c", of.has, "has", of.key)
			if got = strings.TrimSpace(out); err != nil || got == "" {
				return fmt.Sprint("it does not: ", err)
			}
			return ""
		})
		if got != changed[pod] {
			f.Errorf("%s: %s has %q, and %q was set", after, pod, got, changed[pod])
		}
	}
	f.Sayf("%s: %d settings looked for", after, len(changed))
}

func (f *found) inPod(ctx context.Context, pod, script string, args ...string) string {
	f.Helper()
	out, err := f.Kubectl(ctx, append([]string{"exec", "-n", demo.Namespace, pod, "-c", strings.Split(pod, "-")[1], "--", "bash", "-c", script, "in"}, args...)...)
	f.must(err)
	return out
}

// plugin runs a verb of runtime-config, which has to succeed, to say these words and no
// value.
func (f *found) plugin(ctx context.Context, dir, verb string, says ...string) {
	f.Helper()
	var out bytes.Buffer
	args := []string{"runtime-config", verb, "dcr", demo.Name, "-n", demo.Namespace, "--backup-dir", dir, "--kubeconfig", f.Cluster.Kubeconfig()}
	if verb == "migrate" {
		args = append(args, "--yes")
	}
	cmd := cli.Command(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out})
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	f.Logf("kubectl fairlead %s\n%s", strings.Join(args[:6], " "), out.String())
	f.must(err)
	for _, part := range says {
		if !strings.Contains(out.String(), part) {
			f.Errorf("%s does not say %q", verb, part)
		}
	}
	for _, value := range changed {
		if strings.Contains(out.String(), value) {
			f.Errorf("%s prints the value %s", verb, value)
		}
	}
}
