package cluster

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-dev/fairlead/test/cluster/build"
	"github.com/fairlead-dev/fairlead/test/cluster/ledger"
	"github.com/fairlead-dev/fairlead/test/cluster/node"
	"github.com/fairlead-dev/fairlead/test/cluster/pki"
	"github.com/fairlead-dev/fairlead/test/cluster/process"
	"github.com/fairlead-dev/fairlead/test/cluster/provisioner"
)

// nodeReadyWithin bounds the start of containerd, kubelet and DNS.
const nodeReadyWithin = 3 * time.Minute

// nodeProcess is the name of the node's init in the ledger.
const nodeProcess = "node"

// connectNode makes the link to the node: the API server listens on its end.
func (s *starter) connectNode(ctx context.Context) error {
	if err := node.InstallPackages(ctx, s.opts.Log); err != nil {
		return err
	}
	if err := s.findSelf(ctx); err != nil {
		return err
	}
	var err error
	if s.network, err = node.Connect(ctx, s.ledger); err != nil {
		return err
	}
	s.services = s.network.Services
	s.address, err = netip.ParseAddr(s.network.Host)
	return err
}

// startNode starts the node and waits until Pods can run on it.
func (s *starter) startNode(ctx context.Context) error {
	if err := s.nodeIdentities(); err != nil {
		return err
	}
	cgroup := "fairlead-" + s.id
	if err := s.ledger.Update(func(r *ledger.Record) { r.Cgroup = cgroup }); err != nil {
		return err
	}
	if err := node.MakeCgroups(cgroup); err != nil {
		return err
	}
	spec, err := node.Setup{
		Dir: s.opts.Dir, ID: s.id, Version: s.opts.Version, Cgroup: cgroup, Network: s.network,
		Self: s.opts.Self, Binaries: s.binaries, DieWithParent: s.opts.DieWithParent,
	}.InitSpec()
	if err != nil {
		return err
	}
	init, err := s.startProcess(spec)
	if err != nil {
		return err
	}
	if err := s.network.Attach(ctx, init); err != nil {
		return err
	}
	s.sayf("node started in network 10.%d.0.0/16", s.network.Number)
	ctx, cancel := context.WithTimeout(ctx, nodeReadyWithin)
	defer cancel()
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"pause image imported", func(ctx context.Context) error { return s.importPause(ctx, init) }},
		{"storage class " + provisioner.ClassName + " made", s.createStorageClass},
		{"DNS answers", s.resolves},
		{"node " + node.Name + " ready", s.nodeReady},
	} {
		if err := until(ctx, step.do, init); err != nil {
			return err
		}
		s.sayf("%s", step.what)
	}
	return nil
}

// nodeIdentities issues the kubeconfigs of the node's programs.
func (s *starter) nodeIdentities() error {
	server := s.ledger.Record().Server
	for file, id := range map[string]pki.Identity{
		node.KubeletConfig:     {Name: "system:node:" + node.Name, Groups: []string{"system:nodes"}},
		node.ProxyConfig:       {Name: "system:kube-proxy"},
		node.DNSConfig:         {Name: "coredns", Groups: []string{"system:masters"}},
		node.ProvisionerConfig: {Name: "provisioner", Groups: []string{"system:masters"}},
	} {
		if err := s.ca.Kubeconfig(s.path(file), server, id.Name, id); err != nil {
			return err
		}
	}
	return nil
}

func (s *starter) importPause(ctx context.Context, init *process.Running) error {
	reader, writer := io.Pipe()
	go func() { writer.CloseWithError(node.WriteImage(writer, node.PauseImage, s.binaries[build.Pause])) }()
	defer reader.Close()
	return node.Import(ctx, init.PID, reader)
}

func (s *starter) createStorageClass(ctx context.Context) error {
	client, err := s.client()
	if err != nil {
		return err
	}
	_, err = client.StorageV1().StorageClasses().Create(ctx, provisioner.Class(), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// resolves asks the node's DNS for the API server's Service.
func (s *starter) resolves(ctx context.Context) error {
	resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, net.JoinHostPort(s.network.Node, "53"))
	}}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	_, err := resolver.LookupHost(ctx, "kubernetes.default.svc."+node.ClusterDomain+".")
	return err
}

func (s *starter) nodeReady(ctx context.Context) error {
	client, err := s.client()
	if err != nil {
		return err
	}
	found, err := client.CoreV1().Nodes().Get(ctx, node.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	return schedulable(found)
}

// LoadImage imports an image archive (docker-archive or OCI) into the real
// node, under the names that the archive gives.
func (c *Cluster) LoadImage(ctx context.Context, archive string) error {
	for _, p := range c.ledger.Record().Processes {
		if p.Name == nodeProcess && process.Alive(p.PID, p.Start) {
			return node.ImportFile(ctx, p.PID, archive)
		}
	}
	return errors.New("this cluster has no real node that runs")
}
