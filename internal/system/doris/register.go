package doris

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/status"
	"github.com/fairlead-dev/fairlead/internal/system/doris/client"
)

// registers is how long a Pod that is ready may take to be known to the database:
// older images start a backend that could not register for a minute.
const registers = 90 * time.Second

// backendKinds are the components whose members the database lists as backends.
var backendKinds = []dorisv1.ComponentType{dorisv1.ComponentBE, dorisv1.ComponentCN}

// unregistered lists the Pods of a component that are ready for long and that the
// database does not know.
func (p planner) unregistered(kind dorisv1.ComponentType) []*corev1.Pod {
	var out []*corev1.Pod
	db := p.world.Database
	if db == nil || !db.Known {
		return nil
	}
	pods := p.world.Pods[string(kind)]
	records := leaveRecords(p.world.StatefulSets[StatefulSetName(p.dc.Name, kind)], pods)
	for i := range pods {
		pod := &pods[i]
		_, leaves := records[pod.Name]
		if leaves || !ready(pod) || p.now.Sub(readySince(pod)) < registers {
			continue
		}
		if row, _ := db.backend(p.nameOf(kind, pod.Name, pod), ""); row == nil {
			out = append(out, pod)
		}
	}
	return out
}

// joining tells whether a Pod has become ready a moment ago and is not known to be a
// member: it registers itself meanwhile.
func (p planner) joining(now time.Time) bool {
	for _, kind := range backendKinds {
		for i := range p.world.Pods[string(kind)] {
			pod := &p.world.Pods[string(kind)][i]
			if ready(pod) && now.Sub(readySince(pod)) < registers && !registered(p.dc, kind, pod.Name) {
				return true
			}
		}
	}
	return false
}

func readySince(pod *corev1.Pod) time.Time {
	return conditionOf(pod, corev1.PodReady).LastTransitionTime.Time
}

// registered tells whether the database knew a Pod at some time.
func registered(dc *dorisv1.DorisCluster, kind dorisv1.ComponentType, pod string) bool {
	now := blockOf(dc, kind)
	return now != nil && slices.Contains(now.RegisteredInstances, pod)
}

// register makes members of Pods that are ready and that the database never knew. One
// that it knew was taken out by somebody.
func (p planner) register() {
	for _, kind := range backendKinds {
		set := p.world.StatefulSets[StatefulSetName(p.dc.Name, kind)]
		if set == nil || specOf(p.dc, kind) == nil || !pinned(set) {
			continue
		}
		for _, pod := range p.unregistered(kind) {
			member, known := p.newAddress(kind, set, pod)
			if registered(p.dc, kind, pod.Name) || len(p.strangers()) > 0 || !known {
				continue
			}
			p.ask(leaver{name: pod.Name}, changeMember{change: client.AddBackend, member: member}, "it is ready, and the database does not know it")
		}
	}
}

// newAddress is how a Pod is registered that never was: by its name, with the domain
// that the frontends have, or by its address where they go by addresses.
func (p planner) newAddress(kind dorisv1.ComponentType, set *appsv1.StatefulSet, pod *corev1.Pod) (client.Node, bool) {
	recorded, known := readAccepted(set)
	if !known {
		return client.Node{}, false
	}
	at := client.Node{Host: pod.Status.PodIP, Port: recorded.Backend.Heartbeat}
	service := "." + InternalServiceName(p.dc.Name, dorisv1.ComponentFE) + "." + p.dc.Namespace
	for _, f := range p.world.Database.Frontends {
		if i := strings.Index(f.Host, service); i > 0 {
			at.Host = pod.Name + "." + InternalServiceName(p.dc.Name, kind) + "." + p.dc.Namespace + f.Host[i+len(service):]
			return at, true
		}
	}
	byAddress := slices.ContainsFunc(p.world.Database.Frontends, func(f client.Frontend) bool { return strings.Count(f.Host, ".") == 3 || strings.Contains(f.Host, ":") })
	return at, byAddress && at.Host != ""
}

// reportMembers fills in what the database says of the members of a component.
func (p planner) reportMembers(kind dorisv1.ComponentType, before, now *dorisv1.ComponentStatus) {
	set := p.world.StatefulSets[StatefulSetName(p.dc.Name, kind)]
	if set == nil || set.Spec.Replicas == nil {
		return
	}
	records := leaveRecords(set, p.world.Pods[string(kind)])
	for _, name := range sortedKeys(records) {
		out := dorisv1.LeavingInstance{Name: name, Since: metav1.NewTime(records[name].Since.UTC())}
		if l := p.leaverOf(kind, set, ordinalOf(name)); l.row != nil {
			out.Tablets = l.row.TabletNum
		}
		out.LastMoved = p.lastMoved(leavingBefore(before, name), out)
		now.LeavingInstances = append(now.LeavingInstances, out)
	}
	if kind == dorisv1.ComponentFE {
		now.FollowerInstances, now.MasterInstance = p.followersOf(set, before), p.masterOf(set, before)
	}
	if !slices.Contains(backendKinds, kind) {
		return
	}
	for n := range int(*set.Spec.Replicas) {
		name := fmt.Sprintf("%s-%d", set.Name, n)
		if before != nil && slices.Contains(before.RegisteredInstances, name) || p.knows(kind, set, n) {
			now.RegisteredInstances = append(now.RegisteredInstances, name)
		}
	}
}

// knows tells whether the database says that it knows a member.
func (p planner) knows(kind dorisv1.ComponentType, set *appsv1.StatefulSet, ordinal int) bool {
	db := p.world.Database
	return db != nil && db.Known && !p.leaverOf(kind, set, ordinal).gone()
}

// membersCondition says which members and Pods do not belong together, and why
// nobody can tell.
func (p planner) membersCondition(extra map[string]status.Verdict) {
	db := p.world.Database
	switch {
	case db == nil:
		return
	case !db.Known:
		if db.Reason == meta.ReasonAccessDenied || db.Reason == meta.ReasonCertificateNotAccepted {
			extra[meta.ConditionMembersRegistered] = status.Verdict{Reason: db.Reason, Message: "the members of the database cannot be seen: " + db.Message}
		}
		return
	}
	var parts []string
	reason := meta.ReasonMemberGone
	for _, kind := range backendKinds {
		for _, pod := range p.unregistered(kind) {
			reason = meta.ReasonNotRegistered
			parts = append(parts, pod.Name+" "+p.whyNotRegistered(kind, pod))
		}
		parts = append(parts, p.orphans(kind)...)
	}
	parts = append(parts, p.orphanFrontends()...)
	parts = append(parts, p.brokersLeft()...)
	if len(parts) > 0 {
		extra[meta.ConditionMembersRegistered] = status.Verdict{Reason: reason, Message: strings.Join(parts, "; ")}
	}
}

func (p planner) whyNotRegistered(kind dorisv1.ComponentType, pod *corev1.Pod) string {
	set := p.world.StatefulSets[StatefulSetName(p.dc.Name, kind)]
	member, known := p.newAddress(kind, set, pod)
	switch refused := p.world.Database.Refused[member.String()]; {
	case registered(p.dc, kind, pod.Name):
		return "is ready and was taken out of the database by somebody: put it back with ALTER SYSTEM ADD BACKEND " + said(member, known) + ", or scale in"
	case len(p.strangers()) > 0:
		return "is ready and not registered, unless it is one of " + strings.Join(p.strangers(), ", ")
	case refused != "":
		return "is ready and cannot be registered: " + refused
	case !known:
		return "is ready and not registered, and it is not known by which name it would be"
	}
	return "is ready and not registered; the operator registers it"
}

// said is how a member is named in a statement.
func said(member client.Node, known bool) string {
	if !known {
		return `"<host>:<heartbeat_port>"`
	}
	return strconv.Quote(member.String())
}

// orphans are members that the database knows and that have no Pod, by the names
// that Pods of the component have.
func (p planner) orphans(kind dorisv1.ComponentType) []string {
	set := p.world.StatefulSets[StatefulSetName(p.dc.Name, kind)]
	if set == nil || set.Spec.Replicas == nil {
		return nil
	}
	var out []string
	for i := range p.world.Database.Backends {
		if b := &p.world.Database.Backends[i]; p.orphan(kind, set, b.Host) {
			out = append(out, addressOf(b)+" is registered and its Pod is gone: drop it once its tablets have other copies, or scale out")
		}
	}
	return out
}

// orphanFrontends are frontends that the database knows and that have no Pod: one that
// was started again after it was taken out may have joined anew. A follower without a
// Pod counts for the majority that elects the master.
func (p planner) orphanFrontends() []string {
	set := p.world.StatefulSets[StatefulSetName(p.dc.Name, dorisv1.ComponentFE)]
	if set == nil || set.Spec.Replicas == nil {
		return nil
	}
	var out []string
	for i := range p.world.Database.Frontends {
		f := &p.world.Database.Frontends[i]
		if f.Alive || !p.orphan(dorisv1.ComponentFE, set, f.Host) {
			continue
		}
		kind, harm := "OBSERVER", ""
		if votes(f) {
			kind, harm = "FOLLOWER", ", and it counts for the majority that elects the master"
		}
		out = append(out, fmt.Sprintf("%s is registered and its Pod is gone%s: take it out with ALTER SYSTEM DROP %s %q, or scale out", frontendAddress(f), harm, kind, frontendAddress(f)))
	}
	return out
}

// orphan tells whether a host is named as a Pod that a set would have, were it larger, and
// that does not leave.
func (p planner) orphan(kind dorisv1.ComponentType, set *appsv1.StatefulSet, host string) bool {
	pod, _, _ := strings.Cut(host, ".")
	n := ordinalOf(pod)
	if n < int(*set.Spec.Replicas) || pod != fmt.Sprintf("%s-%d", set.Name, n) || !p.nameOf(kind, pod, nil).is(host) || p.ours(host) {
		return false // nearly all of them: the records are read for the others alone
	}
	_, leaves := leaveRecords(set, p.world.Pods[string(kind)])[pod]
	return !leaves
}
