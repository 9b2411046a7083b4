package doris

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/system/doris/client"
)

// soonEvery is how soon the database is asked again while members come or go.
const soonEvery = 5 * time.Second

// databaseTimeout bounds the asking: finding the master may take several calls.
const databaseTimeout = 10 * time.Second

// membersAnswer is what the master said.
type membersAnswer struct {
	frontends []client.Frontend
	backends  []client.Backend
	brokers   []client.Broker
	health    client.TabletHealth
}

// Database speaks to the master among the frontends of a cluster. Errors hold no
// secret.
type Database interface {
	// Members lists the members, and counts unhealthy tablets where that is asked.
	Members(ctx context.Context, at databaseAddress, health bool) (membersAnswer, error)
	// MayDecommission tells why backends cannot be decommissioned together; it says
	// nothing where the database does not tell.
	MayDecommission(ctx context.Context, at databaseAddress, members []client.Node) error
	// ChangeMember carries one statement out.
	ChangeMember(ctx context.Context, at databaseAddress, change client.MemberChange, member client.Node) error
}

// sighting is what a database said last.
type sighting struct {
	view DatabaseView
	// about are the Pods that were ready then.
	about string
	// stale tells that something was changed since, and changed how often that was.
	stale   bool
	changed int
	// health, balancing and strict are as they were of interest.
	health, balancing, strict bool
	// refusedAt is when a statement was refused.
	refusedAt time.Time
	// every is how often it is asked while nothing moves.
	every time.Duration
}

// tells whether it still says all that is worth knowing now.
func (s sighting) tells(in interest) bool {
	return !s.stale && (s.health || !in.health) && (s.balancing || !in.balancing) && (s.strict || !in.strict)
}

// interest is what makes the database worth asking.
type interest struct {
	// about names the Pods that are ready, and pods those of the frontends that are there.
	about, pods string
	// moving tells that members come or go, health that tablets count for it.
	moving, health bool
	// balancing tells that it counts whether tablets are moved.
	balancing bool
	// strict tells that nothing goes without the health of tablets, also where the
	// account may not ask for it.
	strict bool
	// every is how often it is asked while nothing moves.
	every time.Duration
}

// accountReader is a way to nodes that can tell what is wrong with an account before it
// is used.
type accountReader interface {
	AccountFault(ctx context.Context, dc *dorisv1.DorisCluster, secretVersion string) string
}

// observeAccount looks at the account that the resource names: once for each version of
// its Secret.
func (s *System) observeAccount(ctx context.Context, dc *dorisv1.DorisCluster, w *World) {
	if s.asker == nil || w.Account == "" || released(dc) {
		return
	}
	if reader, can := s.asker.nodes.(accountReader); can {
		w.AccountFault = reader.AccountFault(ctx, dc, w.Account)
	}
}

// observeDatabase asks the database who its members are.
func (s *System) observeDatabase(ctx context.Context, dc *dorisv1.DorisCluster, w *World) {
	if s.asker == nil || released(dc) {
		return
	}
	database, can := s.asker.nodes.(Database)
	if !can {
		return
	}
	p := s.planner(dc, *w)
	at, reason, message := p.database()
	if len(at.frontends) == 0 {
		w.Database = &DatabaseView{Reason: reason, Message: message}
		return
	}
	in := p.interest()
	in.about += at.secrets() // another one may mend what was refused
	in.moving = in.moving || p.joining(s.asker.now())
	view := s.asker.look(ctx, database, at, in)
	view.Dump = s.asker.dumped(dc.UID)
	w.Database = &view
}

// interest tells what is worth knowing now.
func (p planner) interest() interest {
	in := interest{every: p.tuning.DatabaseInterval, pods: p.frontendPods()}
	var about strings.Builder
	for _, kind := range rendered {
		set := p.world.StatefulSets[StatefulSetName(p.dc.Name, kind)]
		for i := range p.world.Pods[string(kind)] {
			if pod := &p.world.Pods[string(kind)][i]; ready(pod) {
				fmt.Fprintf(&about, "%s %s\n", pod.Name, pod.UID)
			}
		}
		if set == nil {
			continue
		}
		in.strict = in.strict || p.leaves(kind, set)
		in.moving = in.moving || in.strict || rollsOn(p, kind, set)
	}
	in.about, in.health = about.String(), in.moving
	in.balancing = p.upgrading() || len(balanceStopped(p.frontends())) > 0
	return in
}

// frontendPods names the Pods of the frontends that are there, ready or not.
func (p planner) frontendPods() string {
	var out []string
	pods := p.world.Pods[string(dorisv1.ComponentFE)]
	for i := range pods {
		out = append(out, pods[i].Name+" "+string(pods[i].UID))
	}
	return strings.Join(out, "\n")
}

// leaves tells whether members of a component leave, or are to.
func (p planner) leaves(kind dorisv1.ComponentType, set *appsv1.StatefulSet) bool {
	fewer := set.Spec.Replicas != nil && *set.Spec.Replicas > wantedOf(p.dc, kind) && scaledBy(set) == ""
	fewer = fewer && !p.awaitsConsent(kind, set) // nothing happens before
	return fewer || len(leaveRecords(set, p.world.Pods[string(kind)])) > 0
}

// wantedOf is how many Pods of a component the spec asks for.
func wantedOf(dc *dorisv1.DorisCluster, kind dorisv1.ComponentType) int32 {
	spec := specOf(dc, kind)
	if spec == nil {
		return 0
	}
	return replicasOf(spec)
}

// look returns what the database says. It is asked again after a while only, and
// sooner when there is a reason. One that takes its time is not waited for: what it
// said last counts until its answer wakes the cluster.
func (a *asker) look(ctx context.Context, db Database, at databaseAddress, in interest) DatabaseView {
	uid, every := at.cluster.UID, jittered(at.cluster, in.every)
	if in.moving {
		every = soonEvery
	}
	a.mu.Lock()
	a.overlook()
	last, known := a.seen[uid]
	a.mu.Unlock()
	next := last.view.At.Add(every)
	if last.about != in.about {
		next = last.view.At.Add(soonEvery)
	}
	usable := known && last.tells(in)
	if usable && a.now().Before(next) {
		last.view.Next = next
		return last.view
	}
	cluster := types.NamespacedName{Namespace: at.cluster.Namespace, Name: at.cluster.Name}
	answered := a.beside.do(ctx, uid, cluster, func(ctx context.Context) { a.askDatabase(ctx, db, at, in) })
	a.mu.Lock()
	defer a.mu.Unlock()
	view := a.seen[uid].view
	if answered {
		view.Next = view.At.Add(every)
		return view
	}
	if !usable {
		view = DatabaseView{Asking: true, Reason: meta.ReasonProgressing, Message: "the database is being asked", Refused: view.Refused}
	}
	view.Next = a.now().Add(databaseTimeout)
	return view
}

// askDatabase asks the database and keeps what it said.
func (a *asker) askDatabase(ctx context.Context, db Database, at databaseAddress, in interest) {
	ctx, cancel := context.WithTimeout(ctx, databaseTimeout)
	defer cancel()
	a.mu.Lock()
	before := a.seen[at.cluster.UID].changed
	a.mu.Unlock()
	answer, moves, err := in.of(ctx, db, at)
	a.counted("members", endOf(err))
	a.mu.Lock()
	defer a.mu.Unlock()
	last := a.seen[at.cluster.UID]
	s := sighting{about: in.about, health: in.health, balancing: in.balancing, strict: in.strict, refusedAt: last.refusedAt, changed: last.changed, stale: last.changed != before, every: in.every}
	s.view = DatabaseView{Known: err == nil, Frontends: answer.frontends, Backends: answer.backends, Brokers: answer.brokers, Health: answer.health, Balancing: moves, Pods: in.pods, At: a.now()}
	if err != nil {
		s.view.Reason, s.view.Message = unanswered(err)
	}
	if s.view.At.Sub(last.refusedAt) < askEvery {
		s.view.Refused = last.view.Refused
	}
	a.seen[at.cluster.UID] = s
}

// of asks a database for what is worth knowing. For a roll an account is enough that
// may list members: what it may not ask is not known then.
func (in interest) of(ctx context.Context, db Database, at databaseAddress) (answer membersAnswer, moves map[string]string, err error) {
	answer, err = db.Members(ctx, at, in.health)
	if errors.Is(err, client.ErrDenied) && in.health && !in.strict {
		answer, err = db.Members(ctx, at, false)
	}
	balancer, can := db.(Balancer)
	if err != nil || !in.balancing || !can {
		return answer, nil, err
	}
	moves, err = balancer.Balancing(ctx, at)
	if answeredNo(err) {
		return answer, nil, nil
	}
	return answer, moves, err
}

// unanswered says why the database said nothing.
func unanswered(err error) (reason, message string) {
	if errors.Is(err, client.ErrDenied) {
		return meta.ReasonAccessDenied, err.Error()
	}
	if errors.Is(err, client.ErrUntrusted) {
		return meta.ReasonCertificateNotAccepted, err.Error()
	}
	return meta.ReasonCannotReachSystem, err.Error()
}

// overlook drops what nobody asked for since long. The lock is held.
func (a *asker) overlook() {
	for uid, s := range a.seen {
		if a.now().Sub(s.view.At) > 5*max(askEvery, s.every) {
			delete(a.seen, uid)
			delete(a.dumps, uid)
		}
	}
}

// changeMember is one change of one member.
type changeMember struct {
	at     databaseAddress
	change client.MemberChange
	// pod is the Pod of the member.
	pod    string
	member client.Node
	// together are the backends that are to be decommissioned with it: none is
	// before all can be.
	together []client.Node
	// drained lets a backend go only when it holds nothing.
	drained bool
	// followers is how many frontends have to be left that elect the master.
	followers int
}

// Describe says what is done.
func (o changeMember) Describe() string {
	return fmt.Sprintf("%s %s (%s)", strings.ToLower(string(o.change)), o.member, o.pod)
}

// changes carries a change out if it still is to be made, which is asked before.
// What is not done is seen when the database is asked again.
func (a *asker) changes(ctx context.Context, o changeMember) error {
	db, can := a.nodes.(Database)
	if !can {
		return fmt.Errorf("doris cannot be asked to %s", o.Describe())
	}
	ctx, cancel := context.WithTimeout(ctx, 2*databaseTimeout)
	defer cancel()
	err := a.changeIfNeeded(ctx, db, o)
	a.counted("change", endOf(err))
	return a.told(o.at, o.member.String(), err, err != nil)
}

// told notes that the database was told something, so that it is asked again, and
// keeps for a while what it says to it, if that is worth keeping.
func (a *asker) told(at databaseAddress, key string, err error, keep bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.seen[at.cluster.UID]
	s.stale = true
	s.changed++
	if s.view.Refused = maps.Clone(s.view.Refused); s.view.Refused == nil {
		s.view.Refused = map[string]string{}
	}
	if delete(s.view.Refused, key); keep {
		s.view.Refused[key], s.refusedAt = err.Error(), a.now()
	}
	a.seen[at.cluster.UID] = s
	if err != nil {
		return &plan.NotDoneError{Reason: err.Error()}
	}
	return nil
}

// answeredNo tells whether a database answered that it does not do something.
func answeredNo(err error) bool {
	return errors.Is(err, client.ErrRefused) || errors.Is(err, client.ErrDenied)
}

func (a *asker) changeIfNeeded(ctx context.Context, db Database, o changeMember) error {
	answer, err := db.Members(ctx, o.at, false)
	if err != nil {
		return err
	}
	needed, err := o.needed(answer)
	if err != nil || !needed {
		return err
	}
	if len(o.together) > 0 {
		if err := db.MayDecommission(ctx, o.at, o.together); err != nil {
			return err
		}
	}
	return db.ChangeMember(ctx, o.at, o.change, o.member)
}

// needed tells whether the change is still to be made: it may have been made by a
// call whose answer got lost.
func (o changeMember) needed(now membersAnswer) (bool, error) {
	key := o.member.String()
	if o.change.OfBroker() {
		return o.brokerNeeded(now), nil
	}
	if o.change == client.DropObserver || o.change == client.DropFollower {
		for i := range now.frontends {
			switch f := &now.frontends[i]; {
			case frontendAddress(f) != key:
			case o.change == client.DropFollower:
				return o.keepsQuorum(now, f)
			default:
				return observes(f)
			}
		}
		return false, nil
	}
	for i := range now.backends {
		if b := &now.backends[i]; addressOf(b) == key {
			return o.neededBy(b)
		}
	}
	return o.change == client.AddBackend, nil
}

// observes holds that a frontend that is taken out has no vote.
func observes(f *client.Frontend) (bool, error) {
	if f.IsMaster || f.Role != "OBSERVER" {
		return false, fmt.Errorf("%s is no observer but a %s", frontendAddress(f), strings.ToLower(f.Role))
	}
	return true, nil
}

// neededBy tells whether a backend that is registered is to be changed.
func (o changeMember) neededBy(b *client.Backend) (bool, error) {
	switch o.change {
	case client.AddBackend, client.DropObserver, client.DropFollower:
		return false, nil
	case client.Decommission:
		return !b.Decommissioned, nil
	case client.CancelDecommission:
		return b.Decommissioned, nil
	case client.ForceDropBackend:
	}
	if o.drained && !drained(b) {
		return false, fmt.Errorf("%s holds tablets again", addressOf(b))
	}
	return true, nil
}
