package node

import (
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestNetworkAvoidsWhatIsInUse(t *testing.T) {
	for _, tc := range []struct {
		name  string
		taken string
		want  bool
	}{
		{name: "default route meets nobody", taken: `[{"dst":"default"}]`},
		{name: "other networks do not meet it", taken: `[{"dst":"10.181.0.0/16"},{"dst":"192.168.0.0/16"}]`},
		{name: "address inside meets it", taken: `[{"dst":"10.180.7.7"}]`, want: true},
		{name: "network inside meets it", taken: `[{"dst":"10.180.64.0/18"}]`, want: true},
		{name: "network around meets it", taken: `[{"dst":"10.0.0.0/8"}]`, want: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			taken, err := routes([]byte(tc.taken))
			if err != nil {
				t.Fatal(err)
			}
			if got := overlaps(networkNumber(180).whole(), taken); got != tc.want {
				t.Errorf("overlaps = %t, want %t", got, tc.want)
			}
		})
	}
}

func TestNetworkPartsAreApart(t *testing.T) {
	n := networkNumber(200)
	link := netip.MustParsePrefix(n.Host + "/24").Masked()
	pods, services := netip.MustParsePrefix(n.Pods), netip.MustParsePrefix(n.Services)
	if link.Overlaps(pods) || link.Overlaps(services) || pods.Overlaps(services) {
		t.Errorf("parts of %+v overlap", n)
	}
	if !pods.Contains(netip.MustParseAddr(n.Gateway)) || !link.Contains(netip.MustParseAddr(n.Node)) {
		t.Errorf("gateway or node of %+v are outside of their range", n)
	}
}

func TestMissingPackages(t *testing.T) {
	for _, tc := range []struct {
		name   string
		exists func(string) bool
		want   []string
	}{
		{name: "complete machine needs none", exists: func(string) bool { return true }, want: []string{}},
		{
			name:   "package with several files is named once",
			exists: func(path string) bool { return path != "/usr/bin/containerd" && path != "/usr/bin/ctr" },
			want:   []string{"containerd"},
		},
		{
			name:   "names are sorted",
			exists: func(path string) bool { return path != "/usr/sbin/runc" && path != "/usr/sbin/conntrack" },
			want:   []string{"conntrack", "runc"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, missingPackages(tc.exists)); diff != "" {
				t.Errorf("packages (-want +got):\n%s", diff)
			}
		})
	}
}

// TestConfigurationIsWellFormed reads each file as its program would.
func TestConfigurationIsWellFormed(t *testing.T) {
	c := Config{Dir: t.TempDir(), ID: "id", Cgroup: "fairlead-id", Network: networkNumber(200)}
	if err := c.writeFiles(36); err != nil {
		t.Fatal(err)
	}
	read := func(path string) string {
		data, err := os.ReadFile(filepath.Join(c.Dir, path))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	var kubelet map[string]any
	if err := yaml.UnmarshalStrict([]byte(read("node/kubelet.yaml")), &kubelet); err != nil {
		t.Errorf("kubelet.yaml: %v", err)
	}
	for key, want := range map[string]any{"cgroupRoot": "/fairlead-id", "failCgroupV1": false} {
		if diff := cmp.Diff(want, kubelet[key]); diff != "" {
			t.Errorf("%s in kubelet.yaml (-want +got):\n%s", key, diff)
		}
	}
	if !json.Valid([]byte(read("node/cni/10-pods.conflist"))) {
		t.Error("the CNI configuration is no JSON")
	}
	for _, path := range []string{"node/Corefile", "node/containerd.toml", "node/kubelet.yaml", "node/resolv.conf"} {
		if text := read(path); strings.Contains(text, "%!") {
			t.Errorf("%s has a hole:\n%s", path, text)
		}
	}
	var again Config
	if err := json.Unmarshal([]byte(read(configFile)), &again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c, again); diff != "" {
		t.Errorf("the init reads another configuration (-written +read):\n%s", diff)
	}
}

func TestOldKubeletsAreNotToldOfCgroupV1(t *testing.T) {
	c := Config{Dir: t.TempDir(), Network: networkNumber(200)}
	if err := c.writeFiles(29); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(c.Dir, "node/kubelet.yaml"))
	if err != nil || strings.Contains(string(data), "failCgroupV1") {
		t.Errorf("the kubelet of 1.29 is given a setting it does not know (%v)", err)
	}
}

func TestInitRefusesToChangeTheHost(t *testing.T) {
	if err := Init(t.Context(), t.TempDir(), slog.New(slog.DiscardHandler)); err == nil {
		t.Error("the init worked outside of a PID namespace")
	}
}

// The hierarchies of these tests are test doubles: plain directories, in which
// a control file holds the last thing that was written to it.
func unified(t *testing.T, available, enabled string) (root string) {
	t.Helper()
	root = t.TempDir()
	for file, text := range map[string]string{"cgroup.controllers": available, subtreeControl: enabled} {
		if err := os.WriteFile(filepath.Join(root, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func borrow(t *testing.T, root, name string) []string {
	t.Helper()
	dir := filepath.Join(root, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := borrowControllers(root, dir); err != nil {
		t.Fatal(err)
	}
	return borrowed(t, dir)
}

func borrowed(t *testing.T, dir string) []string {
	t.Helper()
	markers, err := filepath.Glob(filepath.Join(dir, borrowedPrefix+"*"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range markers {
		markers[i] = strings.TrimPrefix(filepath.Base(markers[i]), borrowedPrefix)
	}
	return markers
}

func TestBorrowedControllersAreRemembered(t *testing.T) {
	for _, tc := range []struct {
		name, available, enabled string
		want                     []string
	}{
		{name: "controllers that were on are not ours to turn off", available: "cpu memory pids", enabled: "cpu memory pids"},
		{name: "controllers that were off are", available: "cpu cpuset memory pids", enabled: "memory pids", want: []string{"cpu", "cpuset"}},
		{name: "controllers that the kubelet does not ask for are left alone", available: "io rdma memory", enabled: "memory"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, borrow(t, unified(t, tc.available, tc.enabled), "fairlead-a")); diff != "" {
				t.Errorf("borrowed (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("second cluster remembers what the first one borrowed", func(t *testing.T) {
		root := unified(t, "cpu memory", "memory")
		borrow(t, root, "fairlead-a")
		if err := os.WriteFile(filepath.Join(root, subtreeControl), []byte("cpu memory"), 0o644); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"cpu"}, borrow(t, root, "fairlead-b")); diff != "" {
			t.Errorf("borrowed (-want +got):\n%s", diff)
		}
	})
}

func TestBorrowedControllersAreReturned(t *testing.T) {
	root := unified(t, "cpu memory", "memory")
	borrow(t, root, "fairlead-a")
	dir := filepath.Join(root, "fairlead-a")
	if err := returnControllers(root, dir); err != nil {
		t.Fatal(err)
	}
	for _, where := range []string{dir, root} {
		if text, err := os.ReadFile(filepath.Join(where, subtreeControl)); err != nil || string(text) != "-cpu" {
			t.Errorf("last change of the controllers: %q, %v; want -cpu", text, err)
		}
	}
	if left := borrowed(t, dir); len(left) > 0 {
		t.Errorf("still remembered: %v", left)
	}
}

func TestHierarchyOfV1HasNoControllersToBorrow(t *testing.T) {
	root := t.TempDir()
	if err := borrowControllers(root, root); err != nil {
		t.Fatal(err)
	}
	if left := borrowed(t, root); len(left) > 0 {
		t.Errorf("borrowed: %v", left)
	}
}

func TestRemoveTree(t *testing.T) {
	root := filepath.Join(t.TempDir(), "group")
	if err := os.MkdirAll(filepath.Join(root, "a", "b"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := removeTree(root); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(root); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the tree is still there (%v)", err)
	}
	if err := removeTree(root); err != nil {
		t.Errorf("removing what is gone: %v", err)
	}
}

func FuzzRoutes(f *testing.F) {
	f.Add([]byte(`[{"dst":"default"},{"dst":"10.0.0.0/8"},{"dst":"10.1.2.3"}]`))
	f.Fuzz(func(t *testing.T, out []byte) {
		prefixes, err := routes(out)
		for _, p := range prefixes {
			if err != nil || !p.IsValid() {
				t.Errorf("prefix %v with error %v", p, err)
			}
		}
	})
}
