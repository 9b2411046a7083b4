package doris

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/system/doris/client"
)

// databaseDouble is a test double of the database of the simulated cluster: Pods
// that become ready register themselves once, a backend that is decommissioned
// loses its tablets to the others, and is dropped then.
type databaseDouble struct {
	*nodesDouble // the settings of nodes, of which none are asked
	world        *world
	frontends    []client.Frontend
	backends     []client.Backend
	brokers      []client.Broker
	registered   map[string]bool // UIDs of Pods that have registered themselves
	// noAccount is what is wrong with the Secret of the account.
	noAccount string
	// keep leaves drained backends in the list; stuck moves no tablet.
	keep, stuck bool
	// silent does not say beforehand whether backends can be decommissioned.
	silent bool
	// failing is what is answered; losing executes the next statement and answers
	// nothing.
	failing error
	losing  bool
	// replication is the largest replication number.
	replication int
	unhealthy   int64
	statements  []string
	asked       int
	// strange are backends that are decommissioned by somebody else.
	strange map[string]bool
	nextID  int64
	// prefers names the Pod that is elected where it answers.
	prefers string
	pending map[string]bool // Pods that do not register themselves
	// noTags is what is answered to a statement about tags; between comes before it.
	noTags  string
	between func(*client.Backend)
	rollDouble
}

func (w *world) withDatabase() *world {
	w.db = &databaseDouble{world: w, registered: map[string]bool{}, strange: map[string]bool{}, pending: map[string]bool{}, replication: 3, nextID: 100}
	w.system = New(testEngine).Reaching(w.db, func() time.Time { return w.now })
	return w
}

func hostOf(pod string) string {
	service := pod[:strings.LastIndexByte(pod, '-')] + "-internal"
	return pod + "." + service + ".shop.svc.cluster.local"
}

// goesOn lets the database act.
func (d *databaseDouble) goesOn() {
	if d == nil {
		return
	}
	live := map[string]bool{}
	for _, pod := range d.world.pods() {
		live[hostOf(pod.Name)] = ready(&pod)
		if ready(&pod) && !d.registered[string(pod.UID)] && !d.pending[pod.Name] {
			d.registered[string(pod.UID)] = true
			d.registers(pod.Name)
		}
	}
	for i := range d.backends {
		d.backends[i].Alive = live[d.backends[i].Host]
	}
	d.hears()
	d.drains()
}

func (d *databaseDouble) registers(pod string) {
	host := hostOf(pod)
	if strings.Contains(pod, "-broker-") {
		if !slices.ContainsFunc(d.brokers, func(b client.Broker) bool { return b.Host == host }) {
			d.brokers = append(d.brokers, client.Broker{Name: "broker001", Host: host, Port: 8000, Alive: true})
		}
		return
	}
	if strings.Contains(pod, "-fe-") {
		if slices.ContainsFunc(d.frontends, func(f client.Frontend) bool { return f.Host == host }) {
			return
		}
		role := "FOLLOWER"
		if ordinalOf(pod) >= int(electionNumberOf(d.world.dc.Spec.FeSpec)) {
			role = "OBSERVER"
		}
		d.frontends = append(d.frontends, client.Frontend{Host: host, EditLogPort: 9010, Role: role, IsMaster: len(d.frontends) == 0, Alive: true})
		return
	}
	if slices.ContainsFunc(d.backends, func(b client.Backend) bool { return b.Host == host }) {
		return
	}
	d.nextID++
	d.backends = append(d.backends, client.Backend{
		ID: d.nextID, Host: host, HeartbeatPort: 9050, HTTPPort: 8040, Alive: true, TabletNum: new(int64(12)),
		Tag: client.BackendTag{Location: "default", All: map[string]string{"location": "default"}},
	})
}

// drains moves a few tablets of those that are decommissioned.
func (d *databaseDouble) drains() {
	for i := range d.backends {
		b := &d.backends[i]
		if !b.Decommissioned || d.stuck || *b.TabletNum == 0 {
			continue
		}
		moved := min(5, *b.TabletNum)
		for j := range d.backends {
			if !d.backends[j].Decommissioned && d.backends[j].Alive {
				b.TabletNum = new(*b.TabletNum - moved)
				d.backends[j].TabletNum = new(*d.backends[j].TabletNum + moved)
				break
			}
		}
	}
	if !d.keep {
		d.backends = slices.DeleteFunc(d.backends, func(b client.Backend) bool { return drained(&b) && !d.stuck })
	}
}

func (d *databaseDouble) row(pod string) *client.Backend {
	for i := range d.backends {
		if d.backends[i].Host == hostOf(pod) {
			return &d.backends[i]
		}
	}
	return nil
}

func (d *databaseDouble) tablets() int64 {
	var n int64
	for _, b := range d.backends {
		n += *b.TabletNum
	}
	return n
}

func (d *databaseDouble) AccountFault(context.Context, *dorisv1.DorisCluster, string) string {
	return d.noAccount
}

func (d *databaseDouble) Members(_ context.Context, at databaseAddress, health bool) (membersAnswer, error) {
	d.asked++
	if len(at.frontends) == 0 {
		return membersAnswer{}, errors.New("nobody is asked")
	}
	if d.failing != nil {
		return membersAnswer{}, d.failing
	}
	if health && d.plain {
		return membersAnswer{}, &client.Error{Op: "show the health of tablets", Kind: client.ErrDenied}
	}
	return membersAnswer{frontends: slices.Clone(d.frontends), backends: slices.Clone(d.backends), brokers: slices.Clone(d.brokers), health: client.TabletHealth{ReplicaMissing: &d.unhealthy}}, nil
}

func (d *databaseDouble) MayDecommission(_ context.Context, _ databaseAddress, members []client.Node) error {
	left := 0
	for i := range d.backends {
		b := &d.backends[i]
		if !b.Decommissioned && !slices.ContainsFunc(members, func(m client.Node) bool { return m.Host == b.Host }) {
			left++
		}
	}
	if left < d.replication && !d.silent {
		return fmt.Errorf("insufficient backends: %d are left, and table shop.orders needs %d", left, d.replication)
	}
	return nil
}

func (d *databaseDouble) ChangeMember(_ context.Context, _ databaseAddress, change client.MemberChange, member client.Node) error {
	if d.failing != nil {
		return d.failing
	}
	d.statements = append(d.statements, string(change)+" "+podOfHost(member.Host))
	if err := d.carryOut(change, member); err != nil {
		return err
	}
	if d.losing {
		d.losing = false
		return errors.New("the connection broke")
	}
	return nil
}

func (d *databaseDouble) carryOut(change client.MemberChange, member client.Node) error {
	pod := podOfHost(member.Host)
	b := d.row(pod)
	if change.OfBroker() {
		d.brokers = slices.DeleteFunc(d.brokers, func(b client.Broker) bool { return b.Host == member.Host })
		return nil
	}
	if change == client.DropFollower {
		return d.dropFollower(member)
	}
	if change == client.DropObserver {
		d.frontends = slices.DeleteFunc(d.frontends, func(f client.Frontend) bool { return f.Host == member.Host })
		return nil
	}
	if change == client.AddBackend {
		d.registers(pod)
		return nil
	}
	if b == nil {
		return fmt.Errorf("backend does not exist[%s]", member)
	}
	records := leaveRecords(d.world.set(pod[:strings.LastIndexByte(pod, '-')]), d.world.pods())
	if records[pod].Member != member.String() {
		d.world.Errorf("%s %s without a record of it: %v", change, member, records)
	}
	left := 0
	for i := range d.backends {
		if !d.backends[i].Decommissioned && d.backends[i].Host != member.Host {
			left++
		}
	}
	switch change {
	case client.Decommission:
		if left < d.replication {
			return fmt.Errorf("it will cause insufficient backends: table shop.orders needs %d, %d are left", d.replication, left)
		}
		b.Decommissioned = true
	case client.CancelDecommission:
		if d.strange[pod] {
			d.world.Errorf("a decommission of somebody else is cancelled")
		}
		b.Decommissioned = false
	case client.ForceDropBackend:
		recorded := records[pod]
		if *b.TabletNum > 0 && recorded.How != "Drop" {
			d.world.Errorf("%s is dropped with %d tablets", pod, *b.TabletNum)
		}
		d.backends = slices.DeleteFunc(d.backends, func(x client.Backend) bool { return x.Host == b.Host })
	}
	return nil
}

// mayShrink holds that no Pod goes that holds tablets or is a member.
func (d *databaseDouble) mayShrink(set string, from, to int32) {
	if d == nil {
		return
	}
	for n := to; n < from; n++ {
		pod := fmt.Sprintf("%s-%d", set, n)
		if b := d.row(pod); b != nil {
			d.world.Errorf("%s is shrunk away and still is a member with %d tablets", pod, *b.TabletNum)
		}
		if slices.ContainsFunc(d.frontends, func(f client.Frontend) bool { return f.Host == hostOf(pod) }) {
			d.world.Errorf("%s is shrunk away and still is a member", pod)
		}
	}
}

// lives lets time pass until nothing changes any more.
func (w *world) lives() {
	w.Helper()
	quiet := 0
	for range 400 {
		before, statements := w.store.Now().Version, len(w.db.statements)
		tablets := fmt.Sprint(w.db.backends)
		w.reconcile()
		w.controllers()
		w.kubelet()
		w.db.goesOn()
		if w.now = w.now.Add(6 * time.Second); quiet > 1 {
			w.now = w.now.Add(30 * time.Second)
		}
		if quiet++; w.store.Now().Version != before || len(w.db.statements) != statements || fmt.Sprint(w.db.backends) != tablets {
			quiet = 0
		}
		if quiet > 5 { // longer than the database is left alone
			return
		}
	}
	w.Fatalf("it never comes to rest:\n%s", printPlan(w.reconcile()))
}

func (w *world) podNames(kind string) []string {
	var out []string
	for _, p := range w.pods() {
		if strings.Contains(p.Name, "-"+kind+"-") {
			out = append(out, p.Name)
		}
	}
	slices.Sort(out)
	return out
}

// moving tells whether a backend is on its way out.
func (d *databaseDouble) moving() bool {
	return d != nil && len(leaveRecords(d.world.set("doris-be"), d.world.pods())) > 0
}

func podOfHost(host string) string {
	pod, _, _ := strings.Cut(host, ".")
	return pod
}

// dropFollower takes one that votes out, as the master does: not itself, and only if
// those that are left keep their majority.
func (d *databaseDouble) dropFollower(member client.Node) error {
	pod := podOfHost(member.Host)
	if got := leaveRecords(d.world.set("doris-fe"), d.world.pods())[pod].Member; got != member.String() {
		d.world.Errorf("%s is dropped without a record of it: %q", pod, got)
	}
	left, alive := 0, 0
	for i := range d.frontends {
		f := &d.frontends[i]
		switch {
		case f.Host == member.Host && f.IsMaster:
			return errors.New("can not drop current master node")
		case f.Host != member.Host && votes(f):
			left++
			alive += btoi(f.Alive)
		}
	}
	if alive < left {
		d.world.Errorf("%s is dropped while only %d of %d others answer", pod, alive, left)
	}
	if least := int(electionNumberOf(d.world.dc.Spec.FeSpec)); left < least {
		d.world.Errorf("%s is dropped, and %d followers are left of %d", pod, left, least)
	}
	d.frontends = slices.DeleteFunc(d.frontends, func(f client.Frontend) bool { return f.Host == member.Host })
	return nil
}
