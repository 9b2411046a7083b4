package doris

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/rollout"
	"github.com/fairlead-dev/fairlead/internal/system/doris/client"
)

// The conditions of the database under which a Pod that serves goes. They are asked
// of a database that is known. One that never answered promised nothing: there the
// readiness of Pods has to do. One that answered before and does not now is waited
// for.

// silent tells why the database does not say how it is although it has to be heard.
func (p planner) silent(r rolling) (reason, message string) {
	db := p.world.Database
	switch {
	case db == nil, db.Known, p.unheeded():
		return "", ""
	case db.Asking:
		return db.Reason, "the answer of the database: " + db.Message
	case !p.answered(r):
		return "", ""
	}
	switch db.Reason {
	case meta.ReasonNotSupportedYet, meta.ReasonMissingReference:
		return "", "" // nobody can ask it
	}
	return db.Reason, fmt.Sprintf("the database, which answered before and does not now (%s). To replace Pods by their readiness alone, set the annotation %s=%s", db.Message, meta.AnnotationAllow, meta.AllowRollWithoutDatabase)
}

// answered tells whether the database has ever answered: a roll remembers what it
// said, or it named our backends.
func (p planner) answered(r rolling) bool {
	for _, kind := range rendered {
		if now := blockOf(p.dc, kind); now != nil && len(now.RegisteredInstances) > 0 {
			return true
		}
	}
	return len(r.rollRecorded()) > 0 || len(balanceStopped(p.frontends())) > 0
}

// byReadiness says that a Pod goes without the database having been heard.
func (p planner) byReadiness() string {
	db := p.world.Database
	switch {
	case db == nil:
		return ""
	case p.unheeded():
		return " (whatever the database says, as the annotation " + meta.AnnotationAllow + " asks)"
	case !db.Known:
		return " (by the readiness of Pods alone; the database is not heard: " + db.Message + ")"
	}
	return ""
}

// closedGates are the conditions of the database that do not hold.
func (p planner) closedGates(r rolling) []string {
	if _, message := p.silent(r); message != "" {
		return []string{message}
	}
	db := p.world.Database
	if db == nil || !db.Known || p.unheeded() {
		return nil
	}
	var closed []string
	was, now := r.baseline(), unhealthy(db.Health)
	if was != nil && now != nil && *now > *was {
		closed = append(closed, fmt.Sprintf("tablets to be healthy: %d are not, and %d were not when the roll began", *now, *was))
	}
	if back := p.stillStopped(r); len(back) > 0 {
		closed = append(closed, "queries and loads to be given back to "+strings.Join(back, ", "))
	}
	return closed
}

// stillStopped lists the Pods that are back, or stay after all, and do not get yet
// what was stopped for them.
func (p planner) stillStopped(r rolling) []string {
	var names []string
	for _, set := range r.rollRecorded() {
		all, _ := readRolling(set)
		for _, name := range sortedKeys(all.Pods) {
			if r.stays(name, all.Pods[name]) && p.toGiveBack(all.Pods[name]) != nil {
				names = append(names, name)
			}
		}
	}
	return names
}

// stays tells whether a recorded Pod is not to be replaced any more: another one came
// for it, or the spec was put back.
func (r *rolling) stays(name string, recorded rolledPod) bool {
	i := slices.IndexFunc(r.members, func(m rollout.Member) bool { return m.Name == name })
	return i < 0 || r.replaced(name, recorded) || !r.members[i].Outdated
}

// toGiveBack is what a recorded Pod has to get back, nil when that is nothing.
func (p planner) toGiveBack(recorded rolledPod) *client.Routing {
	db := p.world.Database
	if !recorded.stopped() {
		return nil
	}
	if db == nil || !db.Known {
		return &client.Routing{} // nobody knows
	}
	b, _ := db.backend(memberName{}, recorded.Member)
	if b == nil {
		return nil // it is gone from the database
	}
	var back client.Routing
	if recorded.Query && b.State.QueryDisabled {
		back.DisableQuery = new(false)
	}
	if recorded.Load && b.State.LoadDisabled {
		back.DisableLoad = new(false)
	}
	if back == (client.Routing{}) {
		return nil
	}
	return &back
}

// giveBack plans to route queries and loads again to those that are back, and to those
// that do not go now after all.
func (p planner) giveBack(r rolling, going string) {
	db := p.world.Database
	if db == nil || !db.Known {
		return
	}
	for _, set := range r.rollRecorded() {
		all, _ := readRolling(set)
		for _, name := range sortedKeys(all.Pods) {
			recorded := all.Pods[name]
			back := p.toGiveBack(recorded)
			if back == nil || name == going || !p.isBack(r, name, recorded) {
				continue
			}
			p.route(name, recorded.Member, *back, "it is back: queries and loads go to it again")
		}
	}
}

// isBack tells whether the database counts on the Pod that has come for one that
// went.
func (p planner) isBack(r rolling, name string, recorded rolledPod) bool {
	b, _ := p.world.Database.backend(memberName{}, recorded.Member)
	if b == nil || !b.Alive || r.pods[name] == nil || !ready(r.pods[name]) {
		return false
	}
	return !r.replaced(name, recorded) || recorded.Started.IsZero() || startTime(b.LastStartTime).After(recorded.Started)
}

// route plans one statement about what a backend gets.
func (p planner) route(name, member string, what client.Routing, message string) (refused string) {
	at, _, _ := p.database()
	o := routeBackend{at: at, pod: name, member: leaveRecord{Member: member}.node(), what: what}
	return p.tell(plan.Change{
		Object: plan.Ref{Kind: "Pod", Namespace: p.dc.Namespace, Name: name}, Path: routing, To: o.to(), Cause: plan.CauseUser,
		Effect: plan.EffectNone, Verdict: plan.VerdictApply, Reason: meta.ReasonProgressing, Message: message,
	}, o, o.key(), meta.ReasonProgressing)
}

// routing stands for what the database routes to a Pod in a change.
const routing = "queries and loads routed to it"

// prepare does what comes before a Pod that serves goes: what is known of it is
// recorded, and nothing new is routed to it. It tells what is still to come.
func (p planner) prepare(r rolling, name string) (first string) {
	db, pod := p.world.Database, r.pods[name]
	if db == nil || !db.Known || !ready(pod) {
		return ""
	}
	recorded, has := r.record(name)
	said := p.registrationOf(r.kinds[name], pod, recorded.Member)
	if !said.known {
		return ""
	}
	if !has || r.replaced(name, recorded) || recorded.Member != said.address {
		if !r.busy[r.sets[name].Name] {
			p.recordGoing(r, name, said)
		}
		return "what is known of " + name + " to be written down"
	}
	return p.stopRouting(name, recorded, said.backend)
}

// stopRouting sends what is new to other backends than one that is about to go. It
// tells what is still to come.
func (p planner) stopRouting(name string, recorded rolledPod, b *client.Backend) (first string) {
	if b == nil || p.unheeded() || !p.othersServe(b) {
		return ""
	}
	var stop client.Routing
	if recorded.Query && !b.State.QueryDisabled {
		stop.DisableQuery = new(true)
	}
	if recorded.Load && !b.State.LoadDisabled {
		stop.DisableLoad = new(true)
	}
	if stop == (client.Routing{}) {
		return ""
	}
	if refused := p.route(name, recorded.Member, stop, "it is about to be replaced: new queries and loads go to the others"); refused != "" {
		return "" // a version that does not know how; running queries end with the Pod
	}
	return "queries and loads to go to other backends than " + name
}

// rollOver sees to what is left when no Pod is to be replaced any more.
func (p planner) rollOver(r rolling) {
	sets := r.rollRecorded()
	if len(balanceStopped(p.frontends())) > 0 {
		sets = append(sets, p.frontends())
	}
	if len(sets) == 0 {
		if len(p.later) > 0 {
			p.progressing(p.frontends(), "replacing Pods: waiting for "+comesBack(r))
		}
		p.standstill()
		return
	}
	p.giveBack(r, "")
	message := p.notBack(r)
	if len(p.later) > 0 && message == "" { // tablets stay where they are until then
		message = "the turn of the frontends"
	}
	if message == "" || p.halted() {
		message = cmp.Or(message, p.resumeBalance(r))
	}
	p.standstill()
	if message != "" {
		reason, _ := p.silent(r)
		if reason == "" {
			reason = meta.ReasonProgressing
		}
		p.build.Wait(plan.Wait{On: plan.RefOf(sets[0]), Reason: reason, Message: "replacing Pods: waiting for " + message})
		return
	}
	for _, set := range sets {
		if !r.busy[set.Name] {
			p.forgetRolling(set)
		}
	}
}

// comesBack says which Pod of a roll is not back before the frontends have their turn.
func comesBack(r rolling) string {
	if len(r.members) < r.size {
		return "missing Pods"
	}
	for _, m := range rollout.InOrder(r.members) {
		if lacks := m.Lacks(); lacks != "" {
			return m.Name + lacks
		}
	}
	return "the turn of the frontends"
}

// notBack says what of a roll without outdated Pods is not over yet.
func (p planner) notBack(r rolling) string {
	if back := p.stillStopped(r); len(back) > 0 {
		return "queries and loads to be given back to " + strings.Join(back, ", ")
	}
	if _, message := p.silent(r); message != "" {
		return message
	}
	for _, m := range r.members {
		if _, has := r.record(m.Name); has && m.Lacks() != "" {
			return m.Name + m.Lacks()
		}
	}
	return ""
}

// rollsOn tells whether Pods of a set are replaced, as far as that can be told before
// it is planned: then the database is asked more often. Those that shall leave are not
// replaced.
func rollsOn(p planner, kind dorisv1.ComponentType, set *appsv1.StatefulSet) bool {
	if set == nil {
		return false
	}
	if set.Annotations[meta.AnnotationRolling] != "" || set.Annotations[meta.AnnotationBalanceStopped] != "" {
		return true
	}
	pods := p.world.Pods[string(kind)]
	for i := range pods {
		if pinned(set) && ordinalOf(pods[i].Name) < int(wantedOf(p.dc, kind)) && outdated(set, &pods[i], true) {
			return true
		}
	}
	return false
}
