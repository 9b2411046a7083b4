package cluster

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fairlead-dev/fairlead/test/cluster/audit"
	"github.com/fairlead-dev/fairlead/test/cluster/build"
	"github.com/fairlead-dev/fairlead/test/cluster/ledger"
	"github.com/fairlead-dev/fairlead/test/cluster/node"
	"github.com/fairlead-dev/fairlead/test/cluster/pki"
	"github.com/fairlead-dev/fairlead/test/cluster/ports"
	"github.com/fairlead-dev/fairlead/test/cluster/process"
)

// Files in the cluster's directory.
const (
	kubeconfigFile = "kubeconfig"
	auditFile      = "audit.log"
	logsDir        = "logs"
	pkiDir         = "pki"
)

// starter carries one Up from step to step.
type starter struct {
	opts     Options
	ledger   *ledger.Ledger
	id       string
	binaries build.Binaries
	ca       *pki.Authority
	address  netip.Addr // where the API server listens
	services string     // range of Service addresses
	network  node.Network
	began    time.Time
}

func (s *starter) run(ctx context.Context) error {
	programs := build.ControlPlane()
	if s.opts.Nodes == Real {
		programs = build.RealNode()
	}
	var err error
	s.binaries, err = build.Build(ctx, build.Options{
		Version:  s.opts.Version,
		CacheDir: s.opts.CacheDir,
		Log:      s.opts.Log,
		Env:      []string{process.Mark + "=" + s.id},
	}, programs...)
	if err != nil {
		return err
	}
	s.began = time.Now()
	if err := os.Mkdir(s.path(logsDir), 0o755); err != nil {
		return err
	}
	s.address = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	s.services = "10.96.0.0/16"
	if s.opts.Nodes == Real {
		if err := s.connectNode(ctx); err != nil {
			return fmt.Errorf("prepare the node: %w", err)
		}
	}
	if err := s.startControlPlane(ctx); err != nil {
		return err
	}
	if err := s.startNodes(ctx); err != nil {
		return fmt.Errorf("start the nodes: %w", err)
	}
	s.sayf("ready")
	return s.ledger.Update(func(r *ledger.Record) {
		r.Kubectl = s.binaries[build.Kubectl]
		r.Ready = true
	})
}

func (s *starter) startNodes(ctx context.Context) error {
	switch s.opts.Nodes {
	case Real:
		return s.startNode(ctx)
	case Simulated:
		return s.startSimulated(ctx)
	default:
		return nil
	}
}

// startControlPlane starts the four programs. The port reservations end when
// the programs have bound their ports.
func (s *starter) startControlPlane(ctx context.Context) error {
	var all [5]*ports.Reservation
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	for i := range all {
		addr := loopback
		if i == 0 {
			addr = s.address
		}
		var err error
		if all[i], err = ports.Reserve(addr); err != nil {
			return err
		}
		defer all[i].Release()
	}
	p := plane{
		starter: s,
		api:     all[0].Port, etcd: all[1].Port, etcdPeer: all[2].Port, controllers: all[3].Port, scheduler: all[4].Port,
	}
	if err := p.writeFiles(); err != nil {
		return err
	}
	server := p.server()
	if err := s.ledger.Update(func(r *ledger.Record) { r.Server = server }); err != nil {
		return err
	}
	return p.start(ctx, server)
}

// writeFiles makes certificates, kubeconfigs and the audit policy.
func (p *plane) writeFiles() error {
	var err error
	if p.ca, err = pki.New(p.path(pkiDir), time.Now()); err != nil {
		return err
	}
	loopback := []string{"127.0.0.1", "localhost"}
	for file, id := range map[string]pki.Identity{
		"etcd":           {Name: "etcd", Hosts: loopback},
		"etcd-client":    {Name: "kube-apiserver-etcd-client"},
		"apiserver":      {Name: "kube-apiserver", Hosts: append(p.serverNames(), loopback...)},
		"aggregator":     {Name: aggregatorName},
		"kubelet-client": {Name: "kube-apiserver-kubelet-client", Groups: []string{"system:masters"}},
		"controllers":    {Name: "kube-controller-manager", Hosts: loopback},
		"scheduler":      {Name: "kube-scheduler", Hosts: loopback},
	} {
		if err := p.ca.Issue(file, id); err != nil {
			return err
		}
	}
	if err := p.ca.IssueKeyPair("service-account"); err != nil {
		return err
	}
	server := p.server()
	for file, id := range map[string]pki.Identity{
		kubeconfigFile:                        {Name: "fairlead-admin", Groups: []string{"system:masters"}},
		pkiDir + "/controllers-client.config": {Name: "system:kube-controller-manager"},
		pkiDir + "/scheduler-client.config":   {Name: "system:kube-scheduler"},
	} {
		name := id.Name
		if file == kubeconfigFile {
			name = "admin"
		}
		if err := p.ca.Kubeconfig(p.path(file), server, name, id); err != nil {
			return err
		}
	}
	return os.WriteFile(p.path("audit-policy.yaml"), []byte(audit.Policy), 0o600)
}

// server is the URL of the API server.
func (p *plane) server() string {
	return "https://" + netip.AddrPortFrom(p.address, uint16(p.api)).String()
}

// serverNames are what the API server is called by its clients, in Pods too.
func (p *plane) serverNames() []string {
	return []string{
		p.address.String(), firstAddress(p.services),
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
	}
}

// launch starts a program of the control plane.
func (s *starter) launch(name string, binary string, args ...string) (*process.Running, error) {
	return s.startProcess(process.Spec{
		Name:          name,
		Path:          binary,
		Args:          args,
		Log:           s.path(logsDir, name+".log"),
		ID:            s.id,
		DieWithParent: s.opts.DieWithParent,
	})
}

// startProcess starts a program and has it in the ledger.
func (s *starter) startProcess(spec process.Spec) (*process.Running, error) {
	running, err := process.Start(spec)
	if err != nil {
		return nil, err
	}
	return running, s.ledger.Update(func(r *ledger.Record) {
		r.Processes = append(r.Processes, ledger.Process{Name: spec.Name, PID: running.PID, Start: running.Start})
	})
}

func (s *starter) client() (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", s.path(kubeconfigFile))
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// selfPackage is the program that also runs in the background, as a node's
// init, as its provisioner and as simulated nodes.
const selfPackage = "github.com/fairlead-dev/fairlead/hack/cluster"

// findSelf compiles hack/cluster unless the caller has named it. The working
// directory is in the module, as that of every test is.
func (s *starter) findSelf(ctx context.Context) error {
	if s.opts.Self != "" {
		return nil
	}
	s.opts.Self = s.path("cluster")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", s.opts.Self, selfPackage)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", process.Mark+"="+s.id)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w: %s", selfPackage, err, out)
	}
	return nil
}

func (s *starter) path(parts ...string) string {
	return filepath.Join(append([]string{s.opts.Dir}, parts...)...)
}

func (s *starter) sayf(format string, args ...any) {
	fmt.Fprintf(s.opts.Log, "cluster: %s (%s)\n", fmt.Sprintf(format, args...), time.Since(s.began).Round(100*time.Millisecond))
}

// firstAddress returns the first usable address of a range: the one that the
// "kubernetes" Service gets.
func firstAddress(cidr string) string {
	return netip.MustParsePrefix(cidr).Masked().Addr().Next().String()
}
