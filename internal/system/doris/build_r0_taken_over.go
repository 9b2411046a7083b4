package doris

import (
	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
)

const (
	brokerHome    = rootPath + "/apache_hdfs_broker"
	brokerConfKey = "apache_hdfs_broker.conf"
)

// TakenOver renders the components that this operator does not run yet, compute
// nodes and brokers, as the existing operator does (revision 0). It is there to
// compare them with what lives: nothing of it is to be applied.
func TakenOver(dc *dorisv1.DorisCluster, in Inputs) []Component {
	in.Revision = 0
	var list []Component
	for _, c := range takenOver(dc, in) {
		built, _ := c.buildR0()
		built.StatefulSet.Annotations = nil // no record of inputs: nobody applies it
		list = append(list, built)
	}
	return list
}

func takenOver(dc *dorisv1.DorisCluster, in Inputs) []component {
	fe, _ := ReadFrontendConfig(dc, in.ConfigMaps)
	var list []component
	if spec := dc.Spec.CnSpec; spec != nil {
		// A compute node is a backend with a configuration of its own.
		alone := *dc
		alone.Spec.BeSpec = &dorisv1.BeSpec{BaseSpec: spec.BaseSpec}
		be, _ := ReadBackendConfig(&alone, in.ConfigMaps)
		c := component{
			dc: dc, in: in, kind: dorisv1.ComponentCN, field: "spec.cnSpec", spec: &spec.BaseSpec, cn: spec,
			ports: be.Ports(), alive: be.Heartbeat, health: be.Web, tls: be.TLS,
			dataDirs: be.StorageRoots, dataName: "be-storage", home: backendHome, krb5Conf: be.Krb5Conf,
			graceSeconds: grace(be.GraceSeconds, 0, defaultBackendGrace),
			feQueryPort:  fe.Query, prepare: !spec.SkipDefaultSystemInit,
		}
		c.fqdn = c.fqdnR0(backendConfKey)
		list = append(list, c)
	}
	if spec := dc.Spec.BrokerSpec; spec != nil {
		c := component{
			dc: dc, in: in, kind: dorisv1.ComponentBroker, field: "spec.brokerSpec", spec: &spec.BaseSpec, broker: spec,
			home: brokerHome, krb5Conf: "/etc/krb5.conf", feQueryPort: fe.Query,
		}
		c.alive = newConfReader(c.spec, c.field, brokerConfKey, brokerHome, in.ConfigMaps).port("broker_ipc_port", 8000)
		c.ports = []Port{{"broker-ipc-port", c.alive}}
		list = append(list, c)
	}
	return list
}
