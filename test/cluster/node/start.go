package node

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/fairlead-dev/fairlead/test/cluster/build"
	"github.com/fairlead-dev/fairlead/test/cluster/process"
)

// Setup is what a node is made from.
type Setup struct {
	Dir      string // the cluster's directory
	ID       string
	Version  string // of Kubernetes
	Cgroup   string
	Network  Network
	Self     string // the program that runs Init and the provisioner
	Binaries build.Binaries
	// DieWithParent has the node end with the calling process.
	DieWithParent bool
}

// InitSpec writes the node's configuration and describes the init process
// that is to be started.
func (s Setup) InitSpec() (process.Spec, error) {
	minor, err := minorOf(s.Version)
	if err != nil {
		return process.Spec{}, err
	}
	c := Config{Dir: s.Dir, ID: s.ID, Cgroup: s.Cgroup, Network: s.Network, Programs: s.programs(minor)}
	if err := c.writeFiles(minor); err != nil {
		return process.Spec{}, fmt.Errorf("configure the node: %w", err)
	}
	return process.Spec{
		Name: "node",
		Path: s.Self,
		Args: []string{"node-init", "--dir", s.Dir},
		Log:  filepath.Join(s.Dir, "logs", "node.log"),
		ID:   s.ID,
		Attributes: syscall.SysProcAttr{
			Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
		},
		DieWithParent: s.DieWithParent,
	}, nil
}

// Attach moves the node's end of the link into the namespace of its init.
func (n Network) Attach(ctx context.Context, init *process.Running) error {
	_, err := run(ctx, "ip", "link", "set", n.NodeLink(), "netns", strconv.Itoa(init.PID))
	return err
}

func (s Setup) programs(minor int) []Program {
	config := func(path string) string { return filepath.Join(clusterDir, path) }
	return []Program{
		{Name: "containerd", Path: "/usr/bin/containerd", Args: []string{"--config", config(filesDir + "/containerd.toml")}},
		{Name: "kubelet", Path: s.Binaries[build.Kubelet], After: socket, Args: []string{
			"--config=" + config(filesDir+"/kubelet.yaml"),
			"--kubeconfig=" + config(KubeletConfig),
			"--hostname-override=" + Name,
			"--node-ip=" + s.Network.Node,
			"--root-dir=/var/lib/kubelet",
			"--cert-dir=/var/lib/kubelet/pki",
		}},
		{Name: "kube-proxy", Path: s.Binaries[build.Proxy], Args: []string{
			"--kubeconfig=" + config(ProxyConfig),
			"--hostname-override=" + Name,
			"--proxy-mode=" + proxyMode(minor),
			"--cluster-cidr=" + s.Network.Pods,
			"--bind-address=" + s.Network.Node,
			// These belong to the whole machine.
			"--conntrack-max-per-core=0",
			"--conntrack-tcp-timeout-established=0",
			"--conntrack-tcp-timeout-close-wait=0",
		}},
		{Name: "coredns", Path: s.Binaries[build.CoreDNS], Args: []string{"-conf", config(filesDir + "/Corefile")}},
		{Name: "provisioner", Path: s.Self, Args: []string{
			"provisioner", "--kubeconfig", config(ProvisionerConfig), "--volumes", config(volumesDir), "--node", Name,
		}},
	}
}

// proxyMode prefers nftables, which older versions do not have.
func proxyMode(minor int) string {
	if minor < 31 {
		return "iptables"
	}
	return "nftables"
}

func minorOf(version string) (int, error) {
	parts := strings.Split(version, ".")
	if len(parts) != 3 {
		return 0, fmt.Errorf("kubernetes version %q is not of the form 1.x.y", version)
	}
	return strconv.Atoi(parts[1])
}

// Import reads an image archive into the node whose init has the process id.
func Import(ctx context.Context, initPID int, archive io.Reader) error {
	cmd := exec.CommandContext(ctx, "nsenter", "--target", strconv.Itoa(initPID), "--mount", "--pid", "--net", "--",
		"ctr", "--address", socket, "--namespace", "k8s.io", "images", "import", "-")
	cmd.Stdin = archive
	cmd.Dir = "/"
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ctr images import: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// ImportFile imports the archive of the path.
func ImportFile(ctx context.Context, initPID int, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := Import(ctx, initPID, file); err != nil {
		return fmt.Errorf("import %s: %w", path, err)
	}
	return nil
}
