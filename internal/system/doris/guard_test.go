package doris

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// guardCase is a file system and a network as the guard finds them.
type guardCase struct {
	pod string
	// files of the Pod, by path.
	files map[string]string
	// up tells whether something listens at the frontends' address.
	up bool
	// mysql is what the test double of the mysql client does; empty where the
	// image has none.
	mysql string
	// passes tells whether the frontend may start.
	passes bool
}

const (
	roleFile   = "/opt/apache-doris/fe/doris-meta/image/ROLE"
	recordFile = "/etc/fairlead/bootstrap/bootstrapped"

	// A table of frontends, with empty cells, as the client prints it.
	knowsMaster = `printf 'Name\tHost\tRole\tIsMaster\tErrMsg\nfe_1\t\tFOLLOWER\tfalse\t\nfe_2\tb\tFOLLOWER\ttrue\t\n'`
	noMaster    = `printf 'Name\tHost\tRole\tIsMaster\tErrMsg\nfe_1\ta\tFOLLOWER\tfalse\ttrue\n'`
	// Refuses root without password, and knows the master for the account.
	wantsAccount = `[[ "$*" == *"-u keeper"* && $MYSQL_PWD == "a b'c" ]] || exit 1; ` + knowsMaster
)

func TestMetadataGuard(t *testing.T) {
	t.Parallel()
	record := map[string]string{recordFile: "true"}
	with := func(more ...string) map[string]string {
		files := map[string]string{recordFile: "true"}
		for i := 0; i < len(more); i += 2 {
			files[more[i]] = more[i+1]
		}
		return files
	}
	tests := map[string]guardCase{
		"first start of a cluster: may found it":                  {pod: "c-fe-0", passes: true},
		"record that says no: counts as first start":              {pod: "c-fe-0", files: map[string]string{recordFile: "false"}, passes: true},
		"metadata is there: starts":                               {pod: "c-fe-0", files: with(roleFile, "role=FOLLOWER"), passes: true},
		"another ordinal only joins: starts":                      {pod: "c-fe-1", files: record, passes: true},
		"ordinal 10 is not ordinal 0: starts":                     {pod: "c-fe-10", files: record, passes: true},
		"lost metadata and nobody up: stops":                      {pod: "c-fe-0", files: record},
		"lost metadata, image directory without a role: stops":    {pod: "c-fe-0", files: with(filepath.Dir(roleFile)+"/VERSION", "x")},
		"lost metadata and a peer names the master: joins":        {pod: "c-fe-0", files: record, up: true, mysql: knowsMaster, passes: true},
		"lost metadata and a peer without a master: stops":        {pod: "c-fe-0", files: record, up: true, mysql: noMaster},
		"lost metadata and the peer refuses every account: stops": {pod: "c-fe-0", files: record, up: true, mysql: "exit 1"},
		"lost metadata and the peer wants the account: joins": {
			pod: "c-fe-0", files: with("/etc/basic_auth/username", "keeper", "/etc/basic_auth/password", "a b'c"),
			up: true, mysql: wantsAccount, passes: true,
		},
		"lost metadata, a peer up and no client to ask with: joins": {pod: "c-fe-0", files: record, up: true, passes: true},
		"lost metadata and a person allows a new cluster: starts": {
			pod: "c-fe-0", files: with("/etc/podinfo/annotations", "a=\"b\"\nfairlead.dev/found-new-cluster=\"true\"\n"), passes: true,
		},
		"an annotation that only looks like it: stops": {
			pod: "c-fe-0", files: with("/etc/podinfo/annotations", "x.fairlead.dev/found-new-cluster=\"true\"\nfairlead.dev/found-new-cluster=\"false\"\n"),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { runGuard(t, test) })
	}
}

func runGuard(t *testing.T, test guardCase) {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash here")
	}
	root := t.TempDir()
	for file, text := range test.files {
		write(t, filepath.Join(root, file), text, 0o644)
	}
	write(t, filepath.Join(root, "dev/termination-log"), "", 0o644)
	cmd := exec.Command(bash, "-c", guardScript)
	cmd.Env = []string{
		"GUARD_ROOT=" + root, "GUARD_TRIES=1", "PATH=" + toolPath(t, root, test.mysql),
		"POD_NAME=" + test.pod, "POD_NAMESPACE=shop",
		"FAIRLEAD_META_DIR=" + root + filepath.Dir(filepath.Dir(roleFile)),
		"ENV_FE_ADDR=127.0.0.1", "FE_QUERY_PORT=" + port(t, test.up),
	}
	out, err := cmd.CombinedOutput()
	if (err == nil) != test.passes {
		t.Fatalf("exit: %v, may start: %v\n%s", err, test.passes, out)
	}
	message, _ := os.ReadFile(filepath.Join(root, "dev/termination-log"))
	for _, want := range []string{"second, empty cluster", "127.0.0.1", "annotate pod c-fe-0 fairlead.dev/found-new-cluster=true"} {
		if !test.passes && !strings.Contains(string(message), want) {
			t.Errorf("termination message lacks %q:\n%s", want, message)
		}
	}
}

// toolPath returns a PATH with the tools that the script may need and the test
// double of the mysql client, and nothing else.
func toolPath(t *testing.T, root, mysql string) string {
	t.Helper()
	dir := filepath.Join(root, "bin")
	for _, tool := range []string{"bash", "cat", "timeout", "cut", "tee", "sleep", "mkdir", "mv"} {
		file, err := exec.LookPath(tool)
		if err != nil {
			t.Skipf("there is no %s here", tool)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if tool == "sleep" {
			file = "/bin/true" // the test does not wait
		}
		if err := os.Symlink(file, filepath.Join(dir, tool)); err != nil {
			t.Fatal(err)
		}
	}
	if mysql != "" {
		write(t, filepath.Join(dir, "mysql"), "#!"+filepath.Join(dir, "bash")+"\n"+mysql+"\n", 0o755)
	}
	return dir
}

// port returns a port of the loopback at which something listens, or nothing.
func port(t *testing.T, up bool) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, number, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if up {
		t.Cleanup(func() { _ = listener.Close() })
	} else if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return number
}

func write(t *testing.T, file, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}
