package doris

import (
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/status"
	"github.com/fairlead-dev/fairlead/internal/system/doris/client"
)

// A frontend sends a stream load on to a backend, by the name that it knows it by: a
// client outside cannot follow that. So a backend can have a second address, in its
// tags, for loads that ask for it or that came by the same name. Doris replaces all
// tags by those that a statement names, so all are said, and what somebody else has put
// there stays. What is set is recorded before, and only that is changed or taken back.

// endpointsSince is the first version whose frontends know these tags.
var endpointsSince = version{major: 3, minor: 1}

// endpointRecord remembers on a set what members were told.
type endpointRecord struct {
	// Members are the public endpoints that the operator gave, by the address of the
	// member: the last one is what it shall have.
	Members map[string][]string `json:"members,omitempty"`
	// For is what was refused, and by which master, and Refused what it said. Nothing
	// is said again before either is another.
	For     string `json:"for,omitempty"`
	Refused string `json:"refused,omitempty"`
}

func endpointsOn(set *appsv1.StatefulSet) endpointRecord {
	var r endpointRecord
	if set == nil || json.Unmarshal([]byte(set.Annotations[meta.AnnotationEndpoints]), &r) != nil {
		return endpointRecord{}
	}
	return r
}

// endpointOf is where stream loads of a component are sent.
func endpointOf(dc *dorisv1.DorisCluster, kind dorisv1.ComponentType) dorisv1.StreamLoadEndpoint {
	switch {
	case kind == dorisv1.ComponentBE && dc.Spec.BeSpec != nil:
		return dc.Spec.BeSpec.StreamLoadEndpoint
	case kind == dorisv1.ComponentCN && dc.Spec.CnSpec != nil:
		return dc.Spec.CnSpec.StreamLoadEndpoint
	}
	return ""
}

// publishing is what the members of one component shall have in their tags.
type publishing struct {
	kind     dorisv1.ComponentType
	set      *appsv1.StatefulSet
	recorded endpointRecord
	// wanted tells that they shall have an address outside, and public is that; empty
	// while there is none.
	wanted bool
	public string
	// attempt names what is tried, and with which master; tooOld is the version of the
	// master, where that knows no such tags.
	attempt, tooOld string
}

// publishing is nil where there is nothing to see to.
func (p planner) publishing(kind dorisv1.ComponentType) *publishing {
	set, spec := p.world.StatefulSets[StatefulSetName(p.dc.Name, kind)], specOf(p.dc, kind)
	if set == nil || set.Spec.Replicas == nil || spec == nil || !pinned(set) || released(p.dc) {
		return nil
	}
	e := &publishing{kind: kind, set: set, recorded: endpointsOn(set)}
	e.wanted = endpointOf(p.dc, kind) == dorisv1.EndpointLoadBalancer && serviceOf(spec).Type == corev1.ServiceTypeLoadBalancer
	if !e.wanted && set.Annotations[meta.AnnotationEndpoints] == "" {
		return nil
	}
	if e.wanted {
		e.public = outside(p.world.Services[AccessServiceName(p.dc.Name, kind)])
	}
	p.tried(e)
	return e
}

// tried fills in what is tried with the master that there is.
func (p planner) tried(e *publishing) {
	db := p.world.Database
	if db == nil || !db.Known {
		return
	}
	master := p.master()
	if master == nil {
		return
	}
	e.attempt = strings.Join([]string{e.public, master.Version, master.LastStartTime}, " ")
	if v, known := versionIn(master.Version); known && v.older(endpointsSince) {
		e.tooOld = v.String()
	}
}

// outside is the address by which clients outside reach the web port of backends; empty
// while their load balancer has none. An address without colons is taken first, since
// what reads it cuts at one.
func outside(service *corev1.Service) string {
	if service == nil || service.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return ""
	}
	i := slices.IndexFunc(service.Spec.Ports, func(port corev1.ServicePort) bool { return port.Name == portWeb })
	if i < 0 {
		return ""
	}
	var hosts []string
	for _, ingress := range service.Status.LoadBalancer.Ingress {
		if ingress.Hostname != "" {
			hosts = append(hosts, ingress.Hostname)
		} else if ingress.IP != "" {
			hosts = append(hosts, ingress.IP)
		}
	}
	slices.SortStableFunc(hosts, func(a, b string) int { return btoi(strings.Contains(a, ":")) - btoi(strings.Contains(b, ":")) })
	if len(hosts) == 0 {
		return ""
	}
	return net.JoinHostPort(hosts[0], strconv.Itoa(int(service.Spec.Ports[i].Port)))
}

// rows are the members of a component that stay, by their Pods.
func (p planner) rows(e *publishing) map[string]*client.Backend {
	out := map[string]*client.Backend{}
	leaves := leaveRecords(e.set, p.world.Pods[string(e.kind)])
	for n := range int(min(*e.set.Spec.Replicas, max(wantedOf(p.dc, e.kind), 0))) {
		l := p.leaverOf(e.kind, e.set, n)
		if _, leaving := leaves[l.name]; l.row != nil && !l.unclear && !leaving {
			out[l.name] = l.row
		}
	}
	return out
}

// endpoints plans what members are told of addresses outside.
func (p planner) endpoints() {
	for _, kind := range backendKinds {
		e := p.publishing(kind)
		switch db := p.world.Database; {
		case e == nil:
		case db == nil, !db.Known:
			p.noteEndpoints(e)
		case e.attempt != "" && !p.leave.settling:
			p.publish(e)
		}
	}
}

// publish plans the record of one component, or what it has recorded.
func (p planner) publish(e *publishing) {
	rows := p.rows(e)
	todo, next := p.judgeTags(e, rows)
	if p.recordEndpoints(e, next) || next.For != "" || e.tooOld != "" && e.wanted {
		return
	}
	for _, pod := range sortedKeys(todo) {
		p.tag(e, pod, rows[pod], todo[pod])
	}
}

// judgeTags lists the tags that members are to get, by their Pods, and what is to be
// remembered.
func (p planner) judgeTags(e *publishing, rows map[string]*client.Backend) (todo map[string]map[string]string, next endpointRecord) {
	todo, next.Members = map[string]map[string]string{}, map[string][]string{}
	if e.recorded.For == e.attempt {
		next.For, next.Refused = e.recorded.For, e.recorded.Refused
	}
	for _, pod := range sortedKeys(rows) {
		judged, member := e.of(rows[pod]), addressOf(rows[pod])
		if len(judged.record) > 0 && (e.tooOld == "" || len(e.recorded.Members[member]) > 0) {
			next.Members[member] = judged.record
		}
		if judged.tags == nil {
			continue
		}
		todo[pod] = judged.tags
		if refused := p.world.Database.Refused[tagsKey(member)]; refused != "" {
			next.For, next.Refused = e.attempt, refused
		}
	}
	return todo, next
}

// recordEndpoints tells whether the record is to be another one first.
func (p planner) recordEndpoints(e *publishing, next endpointRecord) bool {
	var is any
	text := ""
	if len(next.Members) > 0 || next.For != "" {
		text = encoded(next)
		is = text
	}
	if text == e.set.Annotations[meta.AnnotationEndpoints] {
		return false
	}
	if built, err := p.build.Plan(); err == nil && !p.leave.wrote[e.kind] && !slices.ContainsFunc(built.Steps, func(s plan.Step) bool { return s.Target() == plan.RefOf(e.set) }) {
		const why = "record which addresses outside members are given"
		p.write(note{on: e.set, key: meta.AnnotationEndpoints, is: is, cause: plan.CauseUser, reason: why, message: recordedHere})
	}
	return true
}

// endpointPath stands for the tag in a change.
const endpointPath = client.TagPublicEndpoint + " of its backend"

// tag plans the statement for one member.
func (p planner) tag(e *publishing, pod string, row *client.Backend, tags map[string]string) {
	at, _, _ := p.database()
	o := setTags{at: at, pod: pod, member: client.Node{Host: row.Host, Port: row.HeartbeatPort}, from: row.Tag.All, to: tags}
	message := "stream loads that ask for it are sent there"
	if !e.wanted {
		message = "stream loads are sent to addresses inside, as before"
	}
	p.tell(plan.Change{
		Object: plan.Ref{Kind: "Pod", Namespace: p.dc.Namespace, Name: pod}, Path: endpointPath,
		From: row.Tag.All[client.TagPublicEndpoint], To: tags[client.TagPublicEndpoint], Cause: plan.CauseUser,
		Effect: plan.EffectNone, Verdict: plan.VerdictApply, Reason: meta.ReasonProgressing, Message: message,
	}, o, tagsKey(o.member.String()), meta.ReasonEndpointRefused)
}

// noteEndpoints says what members will be told where nobody can ask the database, as in
// the plugin.
func (p planner) noteEndpoints(e *publishing) {
	if apimeta.IsStatusConditionFalse(p.dc.Status.Conditions, meta.ConditionEndpointsPublished) {
		return // it says why not
	}
	now := blockOf(p.dc, e.kind)
	if now == nil {
		return
	}
	for _, pod := range now.RegisteredInstances {
		has := e.told(p, pod)
		if has == e.public || !e.wanted && has == "" || e.wanted && e.public == "" || ordinalOf(pod) >= int(wantedOf(p.dc, e.kind)) {
			continue
		}
		p.build.Note(plan.Change{
			Object: plan.Ref{Kind: "Pod", Namespace: p.dc.Namespace, Name: pod}, Path: endpointPath, From: has, To: e.public,
			Cause: plan.CauseUser, Effect: plan.EffectNone, Verdict: plan.VerdictWait, Reason: reasonNotAsked,
			Message: "set by the operator, unless somebody has set another one in the database",
		})
	}
}

// told is what the member of a Pod was told last, as far as it is recorded.
func (e *publishing) told(p planner, pod string) string {
	var at *corev1.Pod
	pods := p.world.Pods[string(e.kind)]
	for i := range pods {
		if pods[i].Name == pod {
			at = &pods[i]
		}
	}
	name := p.nameOf(e.kind, pod, at)
	for _, member := range sortedKeys(e.recorded.Members) {
		if given := e.recorded.Members[member]; len(given) > 0 && name.is(leaveRecord{Member: member}.node().Host) {
			return given[len(given)-1]
		}
	}
	return ""
}

// endpointsCondition says why members are not known by the address that they shall
// have outside.
func (p planner) endpointsCondition(extra map[string]status.Verdict) {
	var out status.Verdict
	for _, kind := range backendKinds {
		e := p.publishing(kind)
		if e == nil {
			continue
		}
		said := p.unpublished(e)
		if said.Reason == "" || out.Message == said.Message {
			continue
		}
		if out.Reason == "" {
			out.Reason = said.Reason
		} else {
			said.Message = "; " + said.Message
		}
		out.Message += said.Message
	}
	if out.Reason != "" {
		extra[meta.ConditionEndpointsPublished] = out
	}
}

func (p planner) unpublished(e *publishing) status.Verdict {
	service := AccessServiceName(p.dc.Name, e.kind)
	switch {
	case e.wanted && e.public == "":
		return status.Verdict{Reason: meta.ReasonWaitingForAddress, Message: "the load balancer of Service " + service + " has no address yet: stream loads are sent to addresses inside"}
	case e.attempt == "":
		return p.stillUnpublished()
	case e.wanted && e.tooOld != "":
		return status.Verdict{Reason: meta.ReasonVersionTooOld, Message: fmt.Sprintf("Doris %s knows no addresses outside for stream loads: upgrade to %s, or take %s.streamLoadEndpoint out", e.tooOld, endpointsSince, fieldOf(e.kind))}
	case e.recorded.For == e.attempt:
		return status.Verdict{Reason: meta.ReasonEndpointRefused, Tell: true, Message: fmt.Sprintf(
			"the database refuses %s of the %s: %s. It is tried again when the master has started again", client.TagPublicEndpoint, pluralOf(e.kind), e.recorded.Refused)}
	}
	var theirs []string
	rows := p.rows(e)
	for _, pod := range sortedKeys(rows) {
		if judged := e.of(rows[pod]); judged.theirs != "" {
			theirs = append(theirs, pod+" has "+judged.theirs)
		}
	}
	if len(theirs) == 0 {
		return status.Verdict{}
	}
	return status.Verdict{Reason: meta.ReasonSetBySomebody, Message: fmt.Sprintf(
		"%s of the %s was set by somebody else and stays: %s; the operator would set %s", client.TagPublicEndpoint, pluralOf(e.kind), strings.Join(theirs, ", "), e.public)}
}

// stillUnpublished is what was said last: nobody can ask now.
func (p planner) stillUnpublished() status.Verdict {
	was := apimeta.FindStatusCondition(p.dc.Status.Conditions, meta.ConditionEndpointsPublished)
	if was == nil || was.Reason == meta.ReasonWaitingForAddress {
		return status.Verdict{}
	}
	return status.Verdict{Reason: was.Reason, Message: was.Message}
}
