package doris

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/rollout"
	"github.com/fairlead-dev/fairlead/internal/system/doris/client"
)

// rollRecord is what a roll has to know later, in the annotation AnnotationRolling on
// a set. It is written before a Pod goes, where the database answers, and is gone
// when the roll is over.
type rollRecord struct {
	// Unhealthy is how many tablets were not as they should be when the roll began;
	// nil where the database did not say.
	Unhealthy *int64 `json:"unhealthy,omitempty"`
	// Pods are those that go, or went.
	Pods map[string]rolledPod `json:"pods,omitempty"`
}

// rolledPod is one that goes, or went.
type rolledPod struct {
	// UID of the Pod that goes: one of the same name and another UID has come for it.
	UID string `json:"uid"`
	// Member is how the database names it, host and port.
	Member string `json:"member"`
	// Started is when its process had started, as the database said.
	Started time.Time `json:"started,omitzero"`
	// Query and Load tell that the operator stopped what is routed to it, or is about
	// to. What was stopped before is not ours, and stays.
	Query bool `json:"query,omitempty"`
	Load  bool `json:"load,omitempty"`
}

// stopped tells whether something is to be given back.
func (r rolledPod) stopped() bool { return r.Query || r.Load }

func readRolling(set *appsv1.StatefulSet) (r rollRecord, ok bool) {
	if set == nil || set.Annotations[meta.AnnotationRolling] == "" {
		return rollRecord{}, false
	}
	return r, json.Unmarshal([]byte(set.Annotations[meta.AnnotationRolling]), &r) == nil
}

// record is what is known of a Pod by its name.
func (r *rolling) record(name string) (rolledPod, bool) {
	all, _ := readRolling(r.sets[name])
	one, has := all.Pods[name]
	return one, has
}

// replaced tells whether another Pod has come for the one that was recorded.
func (r *rolling) replaced(name string, recorded rolledPod) bool {
	pod := r.pods[name]
	return pod == nil || string(pod.UID) != recorded.UID
}

// baseline is how many tablets were not as they should be when the roll began.
func (r *rolling) baseline() *int64 {
	for _, set := range r.all {
		if all, ok := readRolling(set); ok && all.Unhealthy != nil {
			return all.Unhealthy
		}
	}
	return nil
}

// registration is what the database says of a Pod.
type registration struct {
	// known tells that it has one row of it.
	known, alive bool
	started      time.Time
	address      string
	rank         int
	backend      *client.Backend
}

// registrationOf looks a Pod up.
func (p planner) registrationOf(kind dorisv1.ComponentType, pod *corev1.Pod, recorded string) registration {
	db := p.world.Database
	if db == nil || !db.Known {
		return registration{}
	}
	name := p.nameOf(kind, pod.Name, pod)
	switch kind {
	case dorisv1.ComponentFE:
		if f, unclear := db.frontend(name, recorded); f != nil && !unclear {
			return registration{known: true, alive: f.Alive, started: startTime(f.LastStartTime), address: frontendAddress(f), rank: rankOfFrontend(f)}
		}
	case dorisv1.ComponentBE, dorisv1.ComponentCN:
		if b, unclear := db.backend(name, recorded); b != nil && !unclear {
			return registration{known: true, alive: b.Alive, started: startTime(b.LastStartTime), address: addressOf(b), rank: rankOf[kind], backend: b}
		}
	case dorisv1.ComponentBroker:
	}
	return registration{}
}

// RankOf is when a Pod goes among those of the cluster, the lowest first, as far as the
// status of the resource tells: of frontends observers go first, and the master last.
func RankOf(dc *dorisv1.DorisCluster, kind dorisv1.ComponentType, pod string) int {
	rank, now := rankOf[kind], dc.Status.FeStatus
	if kind != dorisv1.ComponentFE || now == nil || len(now.FollowerInstances) == 0 {
		return rank
	}
	switch {
	case pod == now.MasterInstance:
		return rankMaster
	case !slices.Contains(now.FollowerInstances, pod):
		return rankObserver
	}
	return rankFollower
}

func rankOfFrontend(f *client.Frontend) int {
	switch {
	case f.IsMaster:
		return rankMaster
	case strings.EqualFold(f.Role, "OBSERVER"):
		return rankObserver
	}
	return rankFollower
}

// startTime reads when a process started, as the database writes it: to the second,
// in a time zone of its own. Zero where it does not say.
func startTime(text string) time.Time {
	t, err := time.Parse(time.DateTime, text)
	if err != nil {
		return time.Time{}
	}
	return t
}

// heed adds what the database says to what is known of the members.
func (p planner) heed(r *rolling) {
	for i := range r.members {
		m := &r.members[i]
		recorded, has := r.record(m.Name)
		said := p.registrationOf(r.kinds[m.Name], r.pods[m.Name], recorded.Member)
		if !said.known {
			m.Rank = RankOf(p.dc, r.kinds[m.Name], m.Name)
			continue
		}
		m.Rank = said.rank
		if p.unheeded() {
			continue
		}
		if m.Alive = rollout.No; said.alive {
			m.Alive = rollout.Yes
		}
		if has && r.replaced(m.Name, recorded) {
			m.Before, m.Started = recorded.Started, said.started
		}
	}
}

// unheeded tells whether a person lets Pods go whatever the database says.
func (p planner) unheeded() bool {
	return meta.Allowed(p.dc.Annotations, meta.AllowRollWithoutDatabase)
}

// recordGoing plans the record of a Pod that is about to go, and drops those of Pods
// that are back with all that they had.
func (p planner) recordGoing(r rolling, name string, said registration) {
	set := r.sets[name]
	all, _ := readRolling(set)
	next := rollRecord{Unhealthy: r.baseline(), Pods: map[string]rolledPod{}}
	if next.Unhealthy == nil {
		next.Unhealthy = unhealthy(p.world.Database.Health)
	}
	for other, recorded := range all.Pods {
		if r.pods[other] == nil || p.toGiveBack(recorded) != nil {
			next.Pods[other] = recorded
		}
	}
	one := rolledPod{UID: string(r.pods[name].UID), Member: said.address, Started: said.started}
	if b := said.backend; b != nil && p.othersServe(b) {
		one.Query, one.Load = !b.State.QueryDisabled, !b.State.LoadDisabled
	}
	next.Pods[name] = one
	p.writeRolling(set, encoded(next))
}

// forgetRolling plans that a set forgets the roll.
func (p planner) forgetRolling(set *appsv1.StatefulSet) { p.writeRolling(set, nil) }

func (p planner) writeRolling(set *appsv1.StatefulSet, value any) {
	reason := "record what a Pod has before it is replaced"
	if value == nil {
		reason = "the roll is over"
	}
	p.write(note{on: set, key: meta.AnnotationRolling, is: value, cause: plan.CauseUser, reason: reason, message: reason})
}

// rollRecorded lists the sets that remember a roll, in the order of their names.
func (r *rolling) rollRecorded() []*appsv1.StatefulSet {
	var out []*appsv1.StatefulSet
	for _, set := range r.all {
		if set.Annotations[meta.AnnotationRolling] != "" {
			out = append(out, set)
		}
	}
	slices.SortFunc(out, func(a, b *appsv1.StatefulSet) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// othersServe tells whether queries and loads that a backend does not get have
// somewhere to go.
func (p planner) othersServe(b *client.Backend) bool {
	for i := range p.world.Database.Backends {
		o := &p.world.Database.Backends[i]
		if o.ID != b.ID && o.Alive && !o.Decommissioned && !o.State.QueryDisabled && !o.State.LoadDisabled {
			return true
		}
	}
	return false
}

// unhealthy counts the tablets that are not as they should be; nil where the
// database does not say.
func unhealthy(h client.TabletHealth) *int64 {
	if h.ReplicaMissing == nil && h.VersionMissing == nil && h.Unrecoverable == nil {
		return nil
	}
	return new(count(h.ReplicaMissing) + count(h.VersionMissing) + count(h.Unrecoverable))
}
