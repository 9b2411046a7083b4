package doris

import (
	corev1 "k8s.io/api/core/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// Settings are what was read from the configuration files of the components. A
// component that the cluster has not reads as its defaults.
type Settings struct {
	Frontend FrontendConfig
	Backend  BackendConfig
	// Compute are those of the compute nodes: backends with a file of their own.
	Compute BackendConfig
	Broker  BrokerConfig
}

// ReadSettings reads the configuration files of all components.
func ReadSettings(dc *dorisv1.DorisCluster, in Inputs) (Settings, []plan.Finding) {
	var s Settings
	var findings, found []plan.Finding
	s.Frontend, findings = ReadFrontendConfig(dc, in.mountedBy(dorisv1.ComponentFE))
	s.Backend, found = ReadBackendConfig(dc, in.mountedBy(dorisv1.ComponentBE))
	findings = append(findings, found...)
	s.Compute, found = ReadComputeConfig(dc, in.mountedBy(dorisv1.ComponentCN))
	findings = append(findings, found...)
	s.Broker, found = ReadBrokerConfig(dc, in.mountedBy(dorisv1.ComponentBroker))
	return s, append(findings, found...)
}

// mountedBy are the ConfigMaps as a component sees them.
func (in Inputs) mountedBy(kind dorisv1.ComponentType) map[string]*corev1.ConfigMap {
	if own, found := in.Mounted[kind]; found {
		return own
	}
	return in.ConfigMaps
}

// component is one component while it is rendered.
type component struct {
	dc    *dorisv1.DorisCluster
	in    Inputs
	kind  dorisv1.ComponentType
	field string
	spec  *dorisv1.BaseSpec

	ports []Port
	// alive is the port whose listening means that the process is up, and health
	// the one that tells whether it serves.
	alive, health int32
	fqdn          bool
	tls           *TLSFiles
	// dataDirs are where the data lies.
	dataDirs []string
	dataName string
	// scratch tells that nothing is lost with the data: compute nodes keep a cache.
	scratch      bool
	home         string
	krb5Conf     string
	graceSeconds int64
	feQueryPort  int32
	// prepare tells whether the node is prepared by a privileged container.
	prepare bool
	// One of them is set.
	fe     *dorisv1.FeSpec
	be     *dorisv1.BeSpec
	cn     *dorisv1.CnSpec
	broker *dorisv1.BrokerSpec
}

// components returns the components of a cluster in the order in which they are
// brought up.
func components(dc *dorisv1.DorisCluster, in Inputs, s Settings) []component {
	var list []component
	add := func(c component, kind dorisv1.ComponentType) {
		c.dc, c.in, c.kind = dc, in, kind
		c.field, c.spec, c.feQueryPort = fieldOf(kind), specOf(dc, kind), s.Frontend.Query
		if dc.Spec.FeSpec != nil {
			c.fqdn = s.Frontend.FQDN // one decision for the whole cluster
		}
		list = append(list, c)
	}
	if spec := dc.Spec.FeSpec; spec != nil {
		add(frontendComponent(spec, s.Frontend), dorisv1.ComponentFE)
	}
	if spec := dc.Spec.BeSpec; spec != nil {
		c := backendComponent(s.Backend)
		c.be, c.prepare = spec, !spec.SkipDefaultSystemInit
		add(c, dorisv1.ComponentBE)
	}
	if spec := dc.Spec.CnSpec; spec != nil {
		c := backendComponent(s.Compute)
		c.cn, c.prepare, c.scratch = spec, !spec.SkipDefaultSystemInit, s.Compute.Computation
		add(c, dorisv1.ComponentCN)
	}
	if spec := dc.Spec.BrokerSpec; spec != nil {
		add(component{
			broker: spec, ports: s.Broker.Ports(), alive: s.Broker.IPC, home: brokerHome,
			krb5Conf: defaultKrb5Conf, graceSeconds: defaultBrokerGrace,
		}, dorisv1.ComponentBroker)
	}
	return list
}

func frontendComponent(spec *dorisv1.FeSpec, fe FrontendConfig) component {
	return component{
		fe: spec, ports: fe.Ports(), alive: fe.Query, health: fe.HTTP, tls: fe.TLS,
		dataDirs: []string{fe.MetaDir}, dataName: "fe-meta", home: frontendHome, krb5Conf: fe.Krb5Conf,
		graceSeconds: grace(fe.GraceSeconds, frontendGraceMargin, defaultFrontendGrace),
	}
}

// backendComponent is what backends and compute nodes have in common. How members know
// each other is their own file's to say only where the frontends are elsewhere.
func backendComponent(be BackendConfig) component {
	return component{
		ports: be.Ports(), alive: be.Heartbeat, health: be.Web, fqdn: be.FQDN, tls: be.TLS,
		dataDirs: be.StorageRoots, dataName: "be-storage", home: backendHome, krb5Conf: be.Krb5Conf,
		graceSeconds: grace(be.GraceSeconds, backendGraceMargin, defaultBackendGrace),
	}
}

// grace returns how long a Pod gets to stop: what Doris waits and a margin, or a
// default.
func grace(configured, margin, missing int64) int64 {
	if configured <= 0 {
		return missing
	}
	return configured + margin
}

// program is the name by which the image calls what the component runs: a compute
// node is a backend.
func (c component) program() string {
	if c.kind == dorisv1.ComponentCN {
		return rootPath + "/" + string(dorisv1.ComponentBE)
	}
	return rootPath + "/" + string(c.kind)
}

// preparation returns what a component of backends is told about its node.
func (c component) preparation() (skipsInit, resolvesCPU bool) {
	switch {
	case c.be != nil:
		return c.be.SkipDefaultSystemInit, c.be.AutoResolveLimitCPU
	case c.cn != nil:
		return c.cn.SkipDefaultSystemInit, c.cn.AutoResolveLimitCPU
	}
	return false, false
}

// build renders the objects of the component.
func (c component) build() (Component, []plan.Finding) {
	set, findings := c.statefulSet()
	built := Component{
		Type: c.kind, StatefulSet: set, Services: []*corev1.Service{c.internalService()},
		Replicas: wantedReplicas(c.dc, c.kind), FullReplicas: wantedReplicas(c.dc, c.kind),
	}
	if c.broker == nil {
		access, portFindings := c.accessService()
		built.Services = append(built.Services, access)
		findings = append(findings, portFindings...)
	}
	if c.fe != nil && !c.in.Bootstrapped {
		if external, _ := externalFrontends(c.spec); len(external) == 0 {
			built.Replicas = min(built.Replicas, 1)
		}
	}
	return built, findings
}
