package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/test/cluster/ledger"
)

// call runs the program with the arguments and returns all that it says.
func call(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := root()
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func TestCommandsThatAreRefused(t *testing.T) {
	unfinished := filepath.Join(t.TempDir(), "unfinished")
	if _, err := ledger.Create(unfinished, ledger.Record{}); err != nil {
		t.Fatal(err)
	}
	none := filepath.Join(t.TempDir(), "none")
	for _, tc := range []struct {
		name string
		args []string
		want string
	}{
		{name: "unknown kind of nodes", args: []string{"up", "--dir", none, "--nodes", "imaginary"}, want: "imaginary"},
		{name: "flags of simnode without simulated nodes", args: []string{"up", "--dir", none, "--", "--nodes", "5"}, want: "simulated"},
		{name: "argument before the dashes", args: []string{"up", "--dir", none, "--nodes", "simulated", "five"}, want: "five"},
		{name: "directory that is in use", args: []string{"up", "--dir", unfinished}, want: "not empty"},
		{name: "environment of no cluster", args: []string{"env", "--dir", none}, want: "no cluster"},
		{name: "status of no cluster", args: []string{"status", "--dir", none}, want: "no cluster"},
		{name: "status of a cluster that did not come up", args: []string{"status", "--dir", unfinished}, want: "not ready"},
		{name: "image for no cluster", args: []string{"load-image", "--dir", none, "x.tar"}, want: "no cluster"},
		{name: "no image", args: []string{"load-image", "--dir", none}, want: "at least 1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := call(t, tc.args...); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want one that says %q", err, tc.want)
			}
		})
	}
}

func TestDownOfNoClusterIsDone(t *testing.T) {
	out, err := call(t, "down", "--dir", filepath.Join(t.TempDir(), "none"))
	if err != nil || !strings.Contains(out, "nothing to do") {
		t.Errorf("down said %q, %v", out, err)
	}
}

func TestDirectoryComesFromTheEnvironment(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "from-environment")
	t.Setenv("FAIRLEAD_CLUSTER_DIR", dir)
	if _, err := call(t, "status"); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("error = %v, want one about %s", err, dir)
	}
}

func TestEnvironmentKeepsWhatClientsCacheInTheCluster(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "up")
	if _, err := ledger.Create(dir, ledger.Record{Ready: true, Kubectl: "/k8s/kubectl"}); err != nil {
		t.Fatal(err)
	}
	const kubeconfig = "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}], clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]}"
	if err := os.WriteFile(filepath.Join(dir, "kubeconfig"), []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := call(t, "env", "--dir", dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"export KUBECONFIG='" + dir + "/kubeconfig'", "export KUBECACHEDIR='" + dir + "/client-cache'", "export PATH='/k8s'"} {
		if !strings.Contains(out, line) {
			t.Errorf("no line %s in\n%s", line, out)
		}
	}
}

func TestQuote(t *testing.T) {
	for text, want := range map[string]string{
		"/plain":     "'/plain'",
		"/with room": "'/with room'",
		"/it's":      `'/it'\''s'`,
		"$(reboot)":  "'$(reboot)'",
	} {
		if got := quote(text); got != want {
			t.Errorf("quote(%q) = %s, want %s", text, got, want)
		}
	}
}

func TestPluginIsFoundInTheTree(t *testing.T) {
	root := t.TempDir()
	t.Chdir(root)
	if dirs := pluginDirs(); len(dirs) > 0 {
		t.Errorf("outside of the tree: %v", dirs)
	}
	source, below := filepath.Join(root, "cmd", "kubectl-fairlead"), filepath.Join(root, "docs")
	for _, dir := range []string{source, below, filepath.Join(root, "bin")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{filepath.Join(source, "main.go"), filepath.Join(root, "bin", "kubectl-fairlead")} {
		if dirs := pluginDirs(); len(dirs) > 0 {
			t.Errorf("before it is built: %v", dirs)
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(below)
	if got, want := strings.Join(pluginDirs(), " "), filepath.Join(root, "bin")+" "+source; got != want {
		t.Errorf("directories %q, want %q", got, want)
	}
}
