package cluster

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fairlead-dev/fairlead/test/cluster/build"
	"github.com/fairlead-dev/fairlead/test/cluster/process"
)

// plane is the control plane of a cluster that is being started, with the
// ports of its servers.
type plane struct {
	*starter
	api, etcd, etcdPeer, controllers, scheduler int
}

// aggregatorName is who the API server is when it passes a request on.
const aggregatorName = "front-proxy-client"

// start starts the programs and waits until each answers and the default
// service account, which every Pod needs, is there.
func (p *plane) start(ctx context.Context, server string) error {
	client, err := p.serverClient()
	if err != nil {
		return err
	}
	etcd, err := p.launch("etcd", p.binaries[build.Etcd], p.etcdFlags()...)
	if err != nil {
		return err
	}
	api, err := p.launch("kube-apiserver", p.binaries[build.APIServer], p.apiFlags()...)
	if err != nil {
		return err
	}
	p.sayf("etcd and API server started")
	watched := []*process.Running{etcd, api}
	if err := answers(ctx, client, server+"/readyz", watched...); err != nil {
		return err
	}
	p.sayf("API server ready at %s", server)
	controllers, err := p.launch("kube-controller-manager", p.binaries[build.ControllerManager], p.controllerFlags()...)
	if err != nil {
		return err
	}
	scheduler, err := p.launch("kube-scheduler", p.binaries[build.Scheduler], p.schedulerFlags()...)
	if err != nil {
		return err
	}
	watched = append(watched, controllers, scheduler)
	for _, url := range []string{
		fmt.Sprintf("https://127.0.0.1:%d/healthz", p.controllers),
		fmt.Sprintf("https://127.0.0.1:%d/healthz", p.scheduler),
		server + "/api/v1/namespaces/default/serviceaccounts/default",
	} {
		if err := answers(ctx, client, url, watched...); err != nil {
			return err
		}
	}
	p.sayf("controller manager and scheduler ready")
	return nil
}

// serverClient speaks to all servers of the plane: one authority signed them all.
func (p *plane) serverClient() (*http.Client, error) {
	config, err := clientcmd.BuildConfigFromFlags("", p.path(kubeconfigFile))
	if err != nil {
		return nil, err
	}
	return rest.HTTPClientFor(config)
}

func (p *plane) etcdFlags() []string {
	client := fmt.Sprintf("https://127.0.0.1:%d", p.etcd)
	// The peer address is bound because etcd insists; nobody joins this member.
	peer := fmt.Sprintf("http://127.0.0.1:%d", p.etcdPeer)
	return []string{
		"--name=local",
		"--data-dir=" + p.path("etcd"),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=local=" + peer,
		// Certificates of this cluster alone: no other cluster's API server gets in.
		"--cert-file=" + p.ca.Cert("etcd"),
		"--key-file=" + p.ca.Key("etcd"),
		"--client-cert-auth",
		"--trusted-ca-file=" + p.ca.Cert("ca"),
		"--socket-reuse-port",
		"--unsafe-no-fsync", // data that Down deletes need not survive the machine
		"--quota-backend-bytes=8589934592",
		"--log-level=warn",
	}
}

func (p *plane) apiFlags() []string {
	flags := []string{
		fmt.Sprintf("--etcd-servers=https://127.0.0.1:%d", p.etcd),
		"--etcd-cafile=" + p.ca.Cert("ca"),
		"--etcd-certfile=" + p.ca.Cert("etcd-client"),
		"--etcd-keyfile=" + p.ca.Key("etcd-client"),
		"--bind-address=" + p.address.String(),
		"--advertise-address=" + p.address.String(),
		fmt.Sprintf("--secure-port=%d", p.api),
		"--permit-port-sharing",
		"--tls-cert-file=" + p.ca.Cert("apiserver"),
		"--tls-private-key-file=" + p.ca.Key("apiserver"),
		"--client-ca-file=" + p.ca.Cert("ca"),
		// Servers of further APIs, and the other programs' own servers, look
		// these up.
		"--requestheader-client-ca-file=" + p.ca.Cert("ca"),
		"--requestheader-allowed-names=" + aggregatorName,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + p.ca.Cert("aggregator"),
		"--proxy-client-key-file=" + p.ca.Key("aggregator"),
		"--authorization-mode=Node,RBAC",
		"--allow-privileged=true",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-signing-key-file=" + p.ca.Key("service-account"),
		"--service-account-key-file=" + p.ca.Pub("service-account"),
		"--service-cluster-ip-range=" + p.services,
		"--kubelet-client-certificate=" + p.ca.Cert("kubelet-client"),
		"--kubelet-client-key=" + p.ca.Key("kubelet-client"),
		// Names of local nodes are known to no resolver.
		"--kubelet-preferred-address-types=InternalIP",
		"--audit-policy-file=" + p.path("audit-policy.yaml"),
		"--audit-log-path=" + p.path(auditFile),
		// An entry is written before its answer ends, and the file is never
		// rotated: positions in it stay valid.
		"--audit-log-mode=blocking",
		"--audit-log-maxsize=1000000",
		// Clients of a bench come in hundreds.
		"--max-requests-inflight=3000",
		"--max-mutating-requests-inflight=1500",
		"--profiling=false",
	}
	if p.opts.Nodes != Real {
		flags = append(flags,
			// A loopback address is refused as an endpoint.
			"--endpoint-reconciler-type=none",
			// Nobody would lift the taint of a new node: its controller is off.
			"--disable-admission-plugins=TaintNodesByCondition")
	}
	return flags
}

func (p *plane) controllerFlags() []string {
	flags := append(p.clientFlags("controllers", p.controllers),
		"--use-service-account-credentials=true",
		"--service-account-private-key-file="+p.ca.Key("service-account"),
		"--root-ca-file="+p.ca.Cert("ca"),
		"--cluster-signing-cert-file="+p.ca.Cert("ca"),
		"--cluster-signing-key-file="+p.ca.Key("ca"),
	)
	for _, kind := range []string{"statefulset", "deployment", "replicaset", "job", "endpoint", "service-endpoint", "gc"} {
		flags = append(flags, "--concurrent-"+kind+"-syncs=20")
	}
	if p.opts.Nodes != Real {
		// Simulated nodes send no heartbeat that is worth supervising.
		flags = append(flags, "--controllers=*,-node-lifecycle-controller,-taint-eviction-controller")
	}
	return flags
}

func (p *plane) schedulerFlags() []string { return p.clientFlags("scheduler", p.scheduler) }

// clientFlags are those of both programs that work through the API server:
// their own server, and the identity that they work under.
func (p *plane) clientFlags(name string, port int) []string {
	config := p.path(pkiDir, name+"-client.config")
	return []string{
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port),
		"--permit-port-sharing",
		"--tls-cert-file=" + p.ca.Cert(name),
		"--tls-private-key-file=" + p.ca.Key(name),
		"--kubeconfig=" + config,
		"--authentication-kubeconfig=" + config,
		"--authorization-kubeconfig=" + config,
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
		"--leader-elect=false",
		"--profiling=false",
	}
}
