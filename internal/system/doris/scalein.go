package doris

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/system/doris/client"
)

// leaving collects, while it is planned, what is known of members that go.
type leaving struct {
	// pods are those that go: nobody replaces them before.
	pods  map[string]bool
	waits []plan.Wait
	// wrote are the components whose set gets a record by this plan.
	wrote map[dorisv1.ComponentType]bool
	// settling tells that a follower goes by this plan: nobody else does.
	settling bool
	// remaking tells that the Pod of a frontend that joins anew goes by this plan: no
	// other one does.
	remaking bool
}

func newLeaving() *leaving {
	return &leaving{pods: map[string]bool{}, wrote: map[dorisv1.ComponentType]bool{}}
}

// scaling is a set that shall have another number of Pods.
type scaling struct {
	kind      dorisv1.ComponentType
	set       *appsv1.StatefulSet
	has, want int32
	policy    dorisv1.ScaleInPolicy
	// found tells that nobody who may has chosen the number of Pods yet: another
	// operator made the set.
	found bool
	// data tells that its members have tablets.
	data bool
	// leavers go, the highest ordinal first; stayers stay, and may have been on
	// their way out.
	leavers, stayers []leaver
	// voters are those of leavers that elect the master.
	voters []leaver
	// records are what is to be remembered of members that leave.
	records map[string]leaveRecord
}

func (p planner) scaling(kind dorisv1.ComponentType, set *appsv1.StatefulSet, want int32) *scaling {
	s := &scaling{
		kind: kind, set: set, has: *set.Spec.Replicas, want: want, policy: p.scaleInPolicy(kind),
		records: leaveRecords(set, p.world.Pods[string(kind)]),
		found:   !scaledByUs(set) && !agreed(set) && !p.autoscales(kind), data: p.holdsData(kind),
	}
	for n := range int(s.has) {
		l := p.leaverOf(kind, set, n)
		l.recorded = l.recorded && l.record.How == s.policy
		if n < int(want) {
			s.stayers = append(s.stayers, l)
			continue
		}
		s.leavers = append(s.leavers, l)
		p.leave.pods[l.name] = true
	}
	slices.Reverse(s.leavers)
	s.voters = p.voters(kind, s.leavers)
	return s
}

// scaleInPolicy is how members of a component leave.
func (p planner) scaleInPolicy(kind dorisv1.ComponentType) dorisv1.ScaleInPolicy {
	be, cn := p.dc.Spec.BeSpec, p.dc.Spec.CnSpec
	switch {
	case !p.holdsData(kind), be == nil && kind == dorisv1.ComponentBE, be == nil && cn == nil:
		return dorisv1.ScaleInDrop // they hold nothing that is not elsewhere, or there is no elsewhere
	case kind == dorisv1.ComponentBE && be.ScaleInPolicy != "":
		return be.ScaleInPolicy
	case kind == dorisv1.ComponentCN && cn != nil && cn.ScaleInPolicy != "":
		return cn.ScaleInPolicy
	}
	return dorisv1.ScaleInDecommission
}

// holdsData tells whether members of a component have tablets. Compute nodes that
// were never made such by their configuration do.
func (p planner) holdsData(kind dorisv1.ComponentType) bool {
	return kind == dorisv1.ComponentBE || kind == dorisv1.ComponentCN && p.dataInCompute()
}

// scaleIn takes the members that are too many out of the database, and lets those
// stay that were on their way out and are wanted again. It returns how many Pods
// the set shall have now: fewer only when all that go are out.
func (p planner) scaleIn(kind dorisv1.ComponentType, set *appsv1.StatefulSet, want int32) int32 {
	s := p.scaling(kind, set, want)
	if len(s.leavers) == 0 && len(s.records) == 0 {
		return want
	}
	if db := p.world.Database; db == nil || !db.Known {
		p.unheardOf(s)
		return s.has
	}
	p.staying(s)
	p.departed(s)
	out := p.takeOut(s)
	if p.writeLeaving(kind, set, s.records, out.consented) || !out.done {
		return s.has
	}
	return s.want
}

// unheardOf waits for the database, without which nobody comes or goes.
func (p planner) unheardOf(s *scaling) {
	message, reason := "the operator asks the database whether they can go, and takes them out of it first", reasonNotAsked
	if db := p.world.Database; db != nil {
		reason = db.Reason
		message = "the database does not answer: " + db.Message
	}
	if len(s.leavers) == 0 {
		p.waits(s, reason, "members that were leaving are to stay: "+message)
		return
	}
	// What needs a person's word is shown with its digest also where nobody can ask
	// the database, as in the plugin.
	if s.asks() && !s.recorded() && !p.consented(s) {
		return
	}
	p.noteScaleIn(s, reason, message)
	p.waits(s, reason, podNames(s.leavers)+" shall leave: "+message)
}

// asks tells whether a person has to agree that members leave: backends that go with
// what they hold, followers, and Pods that a set had when it was found.
func (s *scaling) asks() bool {
	return s.effect() == plan.EffectDataLoss || s.found || len(s.voters) > 0
}

// autoscales tells whether an autoscaler chooses the number of Pods in the resource,
// which is to be followed also where the set was found.
func (p planner) autoscales(kind dorisv1.ComponentType) bool {
	return kind == dorisv1.ComponentCN && autoscalingPolicy(p.dc) != nil
}

// recorded tells whether all that go are on their way.
func (s *scaling) recorded() bool {
	return !slices.ContainsFunc(s.leavers, func(l leaver) bool { return !l.recorded })
}

// waits is said when all else is planned.
func (p planner) waits(s *scaling, reason, message string) {
	p.leave.waits = append(p.leave.waits, plan.Wait{
		On: plan.RefOf(s.set), Reason: reason, Message: message,
		Person: reason == meta.ReasonScaleInRefused || reason == meta.ReasonNotSupportedYet,
	})
}

// noteScaleIn says that the set will shrink, and what for it waits.
func (p planner) noteScaleIn(s *scaling, reason, message string) {
	p.build.Note(plan.Change{
		Object: plan.RefOf(s.set), Path: replicasPath, From: strconv.Itoa(int(s.has)), To: strconv.Itoa(int(s.want)),
		Cause: plan.CauseUser, Effect: s.effect(), Verdict: plan.VerdictWait, Reason: reason,
		Message: fmt.Sprintf("%s: %s. The set shrinks once, when all are out", podNames(s.leavers), message),
	})
}

func (s *scaling) effect() plan.Effect {
	if s.data && s.policy == dorisv1.ScaleInDrop {
		return plan.EffectDataLoss
	}
	return plan.EffectNone
}

// outcome is how far the members are that go.
type outcome struct {
	// done tells that the database knows none of them, consented that a person has
	// just agreed.
	done, consented bool
}

// takeOut plans the next thing for the members that go.
func (p planner) takeOut(s *scaling) outcome {
	if len(s.leavers) == 0 {
		return outcome{done: true}
	}
	open := slices.DeleteFunc(slices.Clone(s.leavers), func(l leaver) bool { return l.recorded })
	if len(open) > 0 {
		asks := s.asks()
		if asks && !p.consented(s) {
			return outcome{}
		}
		if why := p.unsafe(s); why != "" {
			p.noteScaleIn(s, meta.ReasonMembersUnsafe, why)
			p.waits(s, meta.ReasonMembersUnsafe, podNames(s.leavers)+" cannot leave now: "+why)
			return outcome{}
		}
		for _, l := range open {
			s.records[l.name] = p.recordOf(s, l)
		}
		p.noteScaleIn(s, meta.ReasonMembersLeaving, s.how())
		return outcome{consented: asks}
	}
	s.remade()
	if p.writes(s) {
		return outcome{} // first the records, then the statements
	}
	return outcome{done: p.statements(s)}
}

// writes tells whether a record is still to be written.
func (p planner) writes(s *scaling) bool {
	pods := p.world.Pods[string(s.kind)]
	for i := range pods {
		if _, differs := p.onPod(&pods[i], s.records); differs {
			return true
		}
	}
	return s.set.Annotations[meta.AnnotationLeaving] != encoded(s.records)
}

// statements plans one statement for each member that needs one, and tells whether
// none is needed any more, for any of them.
func (p planner) statements(s *scaling) bool {
	var left, refused []string
	empty := true
	for _, l := range s.leavers {
		if l.gone() {
			continue
		}
		message, no := p.statement(s, l)
		if left = append(left, cmp.Or(message, stillThere(l))); no != "" {
			refused = append(refused, no)
		}
		empty = empty && l.row != nil && drained(l.row)
	}
	if len(left) == 0 {
		return true
	}
	if empty { // all at once: until then each can come back as it was
		refused = p.dropDrained(s)
	}
	still := strings.Join(left, ", ")
	reason, message, said := meta.ReasonMembersLeaving, "leaving the database: "+still, s.how()+" ("+still+")"
	if stuck := p.stuck(s); stuck != "" {
		reason, message, said = meta.ReasonMembersUnsafe, stuck, stuck
	}
	if len(refused) > 0 {
		reason = meta.ReasonScaleInRefused
		message = fmt.Sprintf("the database refuses: %s. Mend that, or put %s.replicas back to %d", strings.Join(slices.Compact(refused), "; "), fieldOf(s.kind), s.has)
		said = message
	}
	p.noteScaleIn(s, reason, said)
	p.waits(s, reason, message)
	return false
}

// statement plans what is to be said about one member: message tells why nothing can
// be said now, refused what the database answered a moment ago.
func (p planner) statement(s *scaling, l leaver) (message, refused string) {
	o := changeMember{member: l.record.node()}
	switch {
	case l.frontend != nil && votes(l.frontend):
		return p.takeOutFollower(s, l)
	case l.frontend != nil:
		o.change = client.DropObserver
		return "", p.ask(l, o, "taken out of the database")
	case s.policy == dorisv1.ScaleInDrop:
		o.change = client.ForceDropBackend
		return "", p.ask(l, o, "taken out of the database with what it holds")
	case l.row.Decommissioned:
		return "", ""
	}
	if why := p.unsafe(s); why != "" {
		return l.name + " waits, since " + why, ""
	}
	o.change, o.together = client.Decommission, s.together()
	return "", p.ask(l, o, "its tablets are moved to the backends that stay")
}

// dropDrained takes the backends out that hold nothing any more.
func (p planner) dropDrained(s *scaling) (refused []string) {
	for _, l := range s.leavers {
		if l.gone() {
			continue
		}
		o := changeMember{change: client.ForceDropBackend, member: l.record.node(), drained: true}
		if no := p.ask(l, o, "it holds no tablet any more and is taken out of the database"); no != "" {
			refused = append(refused, no)
		}
	}
	return refused
}

// together are the backends that are still to be decommissioned.
func (s *scaling) together() []client.Node {
	var out []client.Node
	for _, l := range s.leavers {
		if l.row != nil && !l.row.Decommissioned {
			out = append(out, l.record.node())
		}
	}
	return out
}

func stillThere(l leaver) string {
	switch {
	case l.row == nil || l.row.TabletNum == nil:
		return l.name
	case *l.row.TabletNum == 1:
		return l.name + " with 1 tablet"
	}
	return fmt.Sprintf("%s with %d tablets", l.name, *l.row.TabletNum)
}

func (s *scaling) how() string {
	switch {
	case s.kind == dorisv1.ComponentFE:
		return "frontends are dropped from the database, observers first, then followers one after the other"
	case s.kind == dorisv1.ComponentCN && !s.data:
		return "compute nodes hold no data and are dropped from the database"
	case s.policy == dorisv1.ScaleInDrop:
		return "dropped from the database with what they hold"
	}
	return "decommissioned, and waited for until none of their tablets is left"
}

// consented tells whether a person agreed that members leave, where that is asked.
func (p planner) consented(s *scaling) bool {
	c := plan.Change{
		Object: plan.RefOf(s.set), Path: replicasPath, From: strconv.Itoa(int(s.has)), To: strconv.Itoa(int(s.want)),
		Cause: plan.CauseUser, Effect: s.effect(), Reason: meta.ReasonUnsafeChange,
		Message: podNames(s.leavers) + " are dropped with their tablets, as scaleInPolicy says; what has no other copy is lost",
	}
	switch {
	case s.effect() == plan.EffectDataLoss:
	case !s.found:
		c.Message = p.sayFollowers(s)
	default:
		c.Cause, c.Reason = plan.CauseRevision, meta.ReasonTakenOver
		c.Message = fmt.Sprintf("the set was made by another operator, and the number of its Pods is not ours: %s stay until a person accepts that they go. Then: %s", podNames(s.leavers), s.how())
	}
	return p.build.Hold(plan.Consents(s.set), []plan.Change{c})
}

// rollThenWait replaces Pods that are to be replaced, unless a set is another one
// after this plan, and says then what is waited for of members that come and go:
// what a person has to see to first.
func (p planner) rollThenWait() error {
	if len(p.leave.wrote) == 0 {
		if err := p.rollUnlessSettling(); err != nil {
			return err
		}
	}
	slices.SortStableFunc(p.leave.waits, func(a, b plan.Wait) int { return btoi(b.Person) - btoi(a.Person) })
	for _, w := range p.leave.waits {
		p.build.Wait(w)
	}
	return nil
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// revisited adds to a plan when the database is asked again, or a Pod will have taken
// longer to become ready than it may.
func (p planner) revisited(built plan.Plan) plan.Plan {
	if db := p.world.Database; db != nil && !db.Next.IsZero() {
		built.Revisit = max(db.Next.Sub(p.now), time.Second)
	}
	if left := p.deadlineNext(); left > 0 && (built.Revisit == 0 || left < built.Revisit) {
		built.Revisit = left
	}
	return built
}

func podNames(list []leaver) string {
	var out []string
	for _, l := range list {
		out = append(out, l.name)
	}
	return strings.Join(out, ", ")
}
