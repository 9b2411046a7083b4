package node

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// PauseImage is the image of the container that holds a Pod's namespaces.
const PauseImage = "fairlead.dev/pause:1"

// ClusterDomain is the domain of Services.
const ClusterDomain = "cluster.local"

// containerdToml: the Debian release's containerd lacks a capability on some
// virtual machines, hence restrict_oom_score_adj, and its AppArmor profile and
// /opt directory would stay on the host.
const containerdToml = `version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
oom_score = 0
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs"]

[grpc]
  address = "` + socket + `"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "` + PauseImage + `"
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "` + clusterDir + "/" + filesDir + `/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
`

// cniFormat routes each Pod by itself: with a bridge, the answer of a Service
// in the same network would go past the packet filter that rewrote the request.
const cniFormat = `{
  "cniVersion": "1.0.0",
  "name": "pods",
  "plugins": [
    {
      "type": "ptp",
      "ipMasq": false,
      "ipam": {
        "type": "host-local",
        "ranges": [[{"subnet": "%s", "gateway": "%s"}]],
        "routes": [{"dst": "0.0.0.0/0"}]
      }
    },
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
`

// corefileFormat has no cache: a test sees a changed Service at once.
const corefileFormat = `. {
    bind %s
    errors
    kubernetes ` + ClusterDomain + ` in-addr.arpa ip6.arpa {
        kubeconfig ` + clusterDir + "/" + DNSConfig + `
        pods insecure
        ttl 1
    }
}
`

// kubeletFormat: images are never collected, since no registry could bring
// them back; nothing is evicted before the disk or the memory is really full.
const kubeletFormat = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: unix://` + socket + `
cgroupDriver: cgroupfs
cgroupRoot: /%s
enforceNodeAllocatable: []
failSwapOn: false
localStorageCapacityIsolation: false
makeIPTablesUtilChains: false
oomScoreAdj: 0
maxPods: 250
serializeImagePulls: false
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
evictionHard:
  memory.available: 100Mi
  nodefs.available: 1%%
  nodefs.inodesFree: 1%%
  imagefs.available: 1%%
clusterDomain: ` + ClusterDomain + `
clusterDNS: ["%s"]
resolvConf: ` + clusterDir + "/" + filesDir + `/resolv.conf
volumePluginDir: /var/lib/kubelet/volume-plugins
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: ` + clusterDir + `/pki/ca.crt}
authorization:
  mode: Webhook
kubeAPIQPS: 200
kubeAPIBurst: 400
eventRecordQPS: 0
`

// resolvConf names a nameserver because the format wants one; Pods are given
// the cluster's DNS in its place, and only those with dnsPolicy Default see it.
const resolvConfFormat = "nameserver %s\n"

// minorWithFailCgroupV1 is the first minor version whose kubelet knows the
// setting, and from 1.35 on refuses cgroup v1 without it.
const minorWithFailCgroupV1 = 31

// writeFiles writes the configuration of the node's programs.
func (c Config) writeFiles(minor int) error {
	n := c.Network
	kubelet := fmt.Sprintf(kubeletFormat, c.Cgroup, n.Node)
	if minor >= minorWithFailCgroupV1 {
		kubelet += "failCgroupV1: false\n"
	}
	init, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	files := []struct{ path, text string }{
		{filesDir + "/containerd.toml", containerdToml},
		{filesDir + "/cni/10-pods.conflist", fmt.Sprintf(cniFormat, n.Pods, n.Gateway)},
		{filesDir + "/Corefile", fmt.Sprintf(corefileFormat, n.Node)},
		{filesDir + "/kubelet.yaml", kubelet},
		{filesDir + "/resolv.conf", fmt.Sprintf(resolvConfFormat, n.Node)},
		{configFile, string(init)},
	}
	for path, value := range sysctls {
		files = append(files, struct{ path, text string }{filesDir + "/sysctl/" + flat(path), value + "\n"})
	}
	for _, file := range files {
		path := filepath.Join(c.Dir, file.path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(file.text), 0o644); err != nil {
			return err
		}
	}
	for _, dir := range []string{libDir, logDir, volumesDir} {
		if err := os.Mkdir(filepath.Join(c.Dir, dir), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// sysctls are the settings of the whole machine that a kubelet would change.
// The node sees files with the wanted values in their place.
var sysctls = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

// flat turns a sysctl's path into a file name.
func flat(path string) string { return strings.ReplaceAll(path, "/", ".") }
