package doris

import (
	"hash/fnv"
	"net"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/system/doris/client"
)

// DatabaseView is what the master said of the members of the database, or why it
// said nothing.
type DatabaseView struct {
	// Known tells that the lists are what the database said.
	Known     bool
	Frontends []client.Frontend
	Backends  []client.Backend
	// Brokers are listed in a cluster that has some.
	Brokers []client.Broker
	// Health of the tablets, where members are to leave.
	Health client.TabletHealth
	// Balancing is what the settings of the master are that stop the balancing of
	// tablets, during an upgrade; nil where nobody asked.
	Balancing map[string]string
	// Dump is the last file of metadata that the master was asked for.
	Dump MetadataDump
	// Reason and Message say why it is not known; Asking tells that the answer is on
	// its way.
	Reason, Message string
	Asking          bool
	// Refused is what the database said to statements that it did not carry out, by
	// the address of the member.
	Refused map[string]string
	// Pods are those of the frontends that were there when it was asked.
	Pods string
	// At is when it was asked, and Next when it is asked again.
	At, Next time.Time
}

// memberName is a Pod as the database may know it.
type memberName struct {
	pod, service, namespace string
	// address is that of the Pod; empty while it has none.
	address string
}

// nameOf is how the database may know the Pod of an ordinal.
func (p planner) nameOf(kind dorisv1.ComponentType, name string, pod *corev1.Pod) memberName {
	m := memberName{pod: name, service: InternalServiceName(p.dc.Name, kind), namespace: p.dc.Namespace}
	if pod != nil {
		m.address = pod.Status.PodIP
	}
	return m
}

// is tells whether a host is this Pod: by its full name, by any beginning of it, or
// by its address. A Pod of the same name in another namespace is another one.
func (m memberName) is(host string) bool {
	if ip := net.ParseIP(host); ip != nil {
		return m.address != "" && ip.Equal(net.ParseIP(m.address))
	}
	labels := strings.Split(host, ".")
	for i, want := range []string{m.pod, m.service, m.namespace} {
		if i < len(labels) && !strings.EqualFold(labels[i], want) {
			return false
		}
	}
	return true
}

// backend finds the row of a member by the address that was recorded of it, or by
// its Pod. It is not clear which one it is where two rows are of the Pod.
func (v *DatabaseView) backend(m memberName, recorded string) (row *client.Backend, unclear bool) {
	for i := range v.Backends {
		if recorded != "" && addressOf(&v.Backends[i]) == recorded {
			return &v.Backends[i], false
		}
	}
	for i := range v.Backends {
		if !m.is(v.Backends[i].Host) {
			continue
		}
		if row != nil {
			return row, true
		}
		row = &v.Backends[i]
	}
	return row, false
}

// frontend finds the row of a frontend in the same way.
func (v *DatabaseView) frontend(m memberName, recorded string) (row *client.Frontend, unclear bool) {
	for i := range v.Frontends {
		if recorded != "" && frontendAddress(&v.Frontends[i]) == recorded {
			return &v.Frontends[i], false
		}
	}
	for i := range v.Frontends {
		if !m.is(v.Frontends[i].Host) {
			continue
		}
		if row != nil {
			return row, true
		}
		row = &v.Frontends[i]
	}
	return row, false
}

// addressOf is how a backend is named in statements.
func addressOf(b *client.Backend) string {
	return client.Node{Host: b.Host, Port: b.HeartbeatPort}.String()
}

func frontendAddress(f *client.Frontend) string {
	return client.Node{Host: f.Host, Port: f.EditLogPort}.String()
}

// drained tells whether a backend holds nothing any more and gets nothing. A number
// of tablets that could not be read is not none.
func drained(b *client.Backend) bool {
	return b.Decommissioned && b.TabletNum != nil && *b.TabletNum == 0
}

// strangers are backends that serve and are none of our Pods: one of them may be a
// Pod that is not recognized.
func (p planner) strangers() []string {
	var out []string
	for i := range p.world.Database.Backends {
		b := &p.world.Database.Backends[i]
		if b.Alive && !p.ours(b.Host) {
			out = append(out, addressOf(b))
		}
	}
	slices.Sort(out)
	return out
}

// ours tells whether a host is one of our Pods.
func (p planner) ours(host string) bool {
	for _, kind := range rendered {
		for i := range p.world.Pods[string(kind)] {
			pod := &p.world.Pods[string(kind)][i]
			if p.nameOf(kind, pod.Name, pod).is(host) {
				return true
			}
		}
	}
	return false
}

// databaseAddress is where the frontends of a cluster are asked.
type databaseAddress struct {
	cluster *dorisv1.DorisCluster
	// account is the version of the Secret that names the account.
	account   string
	frontends []client.Node
	// tls is how they are asked over TLS; nil where they speak none.
	tls *encryption
	// brokers tells that it is asked for its brokers as well.
	brokers bool
}

// secrets are the versions of the Secrets that it is asked with.
func (at databaseAddress) secrets() string {
	if at.tls == nil {
		return at.account
	}
	return at.account + " " + at.tls.versions
}

// database is where the database is asked, or why it cannot be.
func (p planner) database() (at databaseAddress, reason, message string) {
	at = databaseAddress{cluster: p.dc, account: p.world.Account, brokers: p.asksBrokers()}
	if p.dc.Spec.FeSpec == nil {
		if p.dc.Spec.BeSpec != nil {
			hosts, port := externalFrontends(&p.dc.Spec.BeSpec.BaseSpec)
			for _, host := range hosts {
				at.frontends = append(at.frontends, client.Node{Host: host, Port: port})
			}
		}
		return at, meta.ReasonMissingReference, "no frontends are named"
	}
	recorded, known := readAccepted(p.world.StatefulSets[StatefulSetName(p.dc.Name, dorisv1.ComponentFE)])
	if !known {
		return at, meta.ReasonProgressing, "the frontends are not there yet"
	}
	at.tls = p.encryptionOf(dorisv1.ComponentFE, recorded)
	pods := p.world.Pods[string(dorisv1.ComponentFE)]
	for i := range pods {
		if ready(&pods[i]) && pods[i].Status.PodIP != "" {
			at.frontends = append(at.frontends, client.Node{Host: pods[i].Status.PodIP, Port: recorded.Frontend.Query})
		}
	}
	return at, meta.ReasonMembersNotReady, "no frontend is ready"
}

// jittered is how often the database of an idle cluster is asked: not more than once
// a minute, and not all of them at the same moment.
func jittered(dc *dorisv1.DorisCluster, every time.Duration) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(dc.UID))
	return every + time.Duration(h.Sum32()%1000)*every/10000
}
