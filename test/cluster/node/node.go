// Package node runs one real Kubernetes node: containerd, kubelet, kube-proxy
// and DNS, in namespaces of its own.
//
// The node is one process tree in its own PID, mount, network, UTS and IPC
// namespaces, begun by a small init (see Init). This is what makes a clean end
// certain: when the init is killed, the kernel ends every process of the node,
// unmounts everything they mounted and removes their interfaces and packet
// filter rules. What remains on the host are the host's end of the network
// link and the node's cgroups, and both are in the cluster's ledger. The node
// sees the host's files, except that /run, /var/lib and /var/log are its own
// and that the sysctls which a kubelet insists on are files of its own.
//
//	host                        │ namespaces of the node
//	API server ── flh<n> ───────┼── fln<n> ── routes ── veth of each Pod
//	10.<n>.0.1                  │   10.<n>.0.2          10.<n>.64.0/18
//	                            │   kube-proxy: Services 10.<n>.128.0/17
package node

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// Name is the name of the node.
const Name = "node-1"

// Paths as the node's processes see them. The cluster's directory appears
// under a short name of fixed length, because the name of a socket may have no
// more than 107 characters.
const (
	clusterDir = "/run/fairlead"
	programDir = "/run/fairlead-programs"
	socket     = "/run/containerd/containerd.sock"
)

// Files and directories of the node in the cluster's directory.
const (
	filesDir   = "node"    // configuration
	libDir     = "var-lib" // the node's /var/lib
	logDir     = "var-log" // the node's /var/log
	volumesDir = "volumes" // data of claims
	configFile = filesDir + "/init.json"
)

// KubeletConfig, ProxyConfig, DNSConfig and ProvisionerConfig are where Init's
// programs look for their kubeconfigs, relative to the cluster's directory.
const (
	KubeletConfig     = "pki/kubelet.config"
	ProxyConfig       = "pki/proxy.config"
	DNSConfig         = "pki/dns.config"
	ProvisionerConfig = "pki/provisioner.config"
)

// Config is all that the node's init needs to know.
type Config struct {
	Dir      string // the cluster's directory on the host
	ID       string // the cluster's id
	Cgroup   string // the cgroup for Pods, in every hierarchy
	Network  Network
	Programs []Program
}

// Program is a process that the init keeps running.
type Program struct {
	Name string
	Path string // on the host
	Args []string
	// After is a socket that must exist before the program is started.
	After string
}

// run runs a command and returns its output; its error carries what the
// command said.
func run(ctx context.Context, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", filepath.Base(name), strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return out, nil
}
