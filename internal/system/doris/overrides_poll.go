package doris

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/diff"
	"github.com/fairlead-dev/fairlead/internal/system/doris/client/setting"
	"github.com/fairlead-dev/fairlead/internal/system/doris/conf"
	"github.com/fairlead-dev/fairlead/internal/system/doris/overrides"
)

// Settings that somebody changes in a running node are seen by asking all nodes of a
// component, about once a minute or as often as the database is asked. What they say is judged at once, and no value of it is
// kept. Neither asking nor an answer without news is anything that the API server hears of.

// polled are the components whose nodes are asked.
var polled = []dorisv1.ComponentType{dorisv1.ComponentFE, dorisv1.ComponentBE, dorisv1.ComponentCN}

const (
	// pollSize is how many nodes of a component are asked in one go; those of a larger
	// one have their turn one after the other.
	pollSize = 32
	// pollTimeout bounds one go.
	pollTimeout = 20 * time.Second
)

// Poller tells all settings of a node, time and again.
type Poller interface {
	Poll(ctx context.Context, at nodeAddress) ([]setting.Item, error)
}

// Poll implements Poller.
func (r reached) Poll(ctx context.Context, at nodeAddress) ([]setting.Item, error) {
	return r.Settings(ctx, at)
}

// pollNode is one node that is asked.
type pollNode struct {
	at    nodeAddress
	start string
	// basis is what its answer is judged by. An answer that was judged by something else
	// counts no more: the operator may have set meanwhile what it tells of.
	basis string
	// judge makes of what the node reports what is kept of it.
	judge func([]setting.Item) []overrides.Setting
}

// pollSubject is a component of a cluster, and how often its nodes are asked.
type pollSubject struct {
	dc    *dorisv1.DorisCluster
	kind  dorisv1.ComponentType
	every time.Duration
}

// pollAnswer is what a node said, as what it was asked.
type pollAnswer struct {
	overrides.Poll
	of pollID
}

// pollRound is what the nodes of a component said last.
type pollRound struct {
	at time.Time
	// every is how often there is one.
	every time.Duration
	said  map[string]pollAnswer
	// asked is as what each node was asked last, whether it answered or not.
	asked map[string]pollID
	// held are the values of nodes whose file may be cut short.
	held map[string]heldValues
	// next is the first node of the next go.
	next int
}

// pollID is a node as something that can be asked: another container, or the same one
// that is judged by something else, has to be asked anew.
type pollID struct{ start, basis string }

func (n pollNode) id() pollID { return pollID{n.start, n.basis} }

// due are the nodes that are to be asked now, and whether it is their turn. Out of turn
// those are asked of whom nothing is known: what somebody changes in a node is to be seen
// against what it had before.
func (r pollRound) due(now time.Time, every time.Duration, nodes []pollNode) (ask []pollNode, turn bool) {
	if !now.Before(r.at.Add(every)) {
		for i := range min(pollSize, len(nodes)) {
			ask = append(ask, nodes[(r.next+i)%len(nodes)])
		}
		return ask, true
	}
	for _, n := range nodes {
		if r.asked[n.at.pod] != n.id() && len(ask) < pollSize {
			ask = append(ask, n)
		}
	}
	return ask, false
}

// observeOverrides asks the nodes of each component whose turn it is.
func (s *System) observeOverrides(ctx context.Context, dc *dorisv1.DorisCluster, w *World) {
	if s.asker == nil || released(dc) {
		return
	}
	poller, can := s.asker.nodes.(Poller)
	if !can {
		return
	}
	p := s.planner(dc, *w)
	every := jittered(dc, max(askEvery, p.tuning.DatabaseInterval))
	w.Polls = map[dorisv1.ComponentType][]overrides.Poll{}
	for _, kind := range polled {
		if nodes := p.pollNodes(kind); len(nodes) > 0 {
			w.Polls[kind] = s.asker.poll(ctx, poller, pollSubject{dc, kind, every}, nodes)
		}
	}
}

// pollNodes are the nodes of a component that run what its set says.
func (p planner) pollNodes(kind dorisv1.ComponentType) []pollNode {
	set := p.world.StatefulSets[StatefulSetName(p.dc.Name, kind)]
	recorded, known := readAccepted(set)
	if !known || specOf(p.dc, kind) == nil {
		return nil
	}
	var out []pollNode
	started, file := p.fileOf(kind, p.contentNamed(recorded.Content)), p.fileOf(kind, p.contentNamed(recorded.newest()))
	pods := p.world.Pods[string(kind)]
	for i := range pods {
		pod := &pods[i]
		if !current(set, pod) || !ready(pod) || pod.Status.PodIP == "" || startOf(pod) == "" {
			continue
		}
		out = append(out, pollNode{
			at: p.address(kind, pod), start: startOf(pod), judge: judgeOf(pod, started, file),
			basis: set.Annotations[meta.AnnotationAccepted] + "\n" + pod.Annotations[meta.AnnotationLive],
		})
	}
	return out
}

// judgeOf says of each setting of a node that can be changed while it runs how it stands
// to the file that the node started with, and to the newest one, whose settings it is
// given while it runs. What the operator sets itself is nobody's change.
func judgeOf(pod *corev1.Pod, started, file settingsFile) func([]setting.Item) []overrides.Setting {
	record := liveRecordOf(pod)
	return func(items []setting.Item) []overrides.Setting {
		var out []overrides.Setting
		for _, item := range items {
			if item.Mutable {
				out = append(out, judged(item, record, started.says(item), file.says(item)))
			}
		}
		return out
	}
}

func judged(item setting.Item, record liveRecord, before, now fileSays) overrides.Setting {
	s := overrides.Setting{Key: item.Key, InFile: before.named || now.named}
	s.Changed = s.InFile && !before.same && !now.same
	switch {
	case !before.known, !now.known, item.Hidden(), diff.Sensitive(item.Key), slices.Contains(balancing, item.Key):
		s.Unclear = true
	case s.Changed && before.named != now.named: // it is to be given what the newest file says, or to forget what the other said
		s.Unclear = !now.named || !record.Done
	case s.InFile:
	case slices.Contains(record.Keys, item.Key):
		s.Unclear = true
	default:
		s.Check = overrides.Check(item.Key, item.Value)
	}
	return s
}

// fileSays is what a file says of a setting: whether it names it, whether the node has the
// value, and whether that is known.
type fileSays struct{ named, same, known bool }

func (f settingsFile) says(item setting.Item) fileSays {
	out := fileSays{known: f.known}
	for key, raw := range f.values {
		if !sameName(key, item.Key) {
			continue
		}
		value, err := conf.ExpandText(raw, f.env)
		out.named, out.known = true, out.known && err == nil
		out.same = out.same || err == nil && setting.Same(item.Type, item.Value, value)
	}
	return out
}

// sameName tells whether two names are of one setting.
func sameName(a, b string) bool {
	_, is := setting.Find([]setting.Item{{Key: a}}, b)
	return is
}

// poll returns what the nodes of a component said last, and asks them when that is long
// ago. Who takes long is not waited for.
func (a *asker) poll(ctx context.Context, poller Poller, of pollSubject, nodes []pollNode) []overrides.Poll {
	dc, subject := of.dc, types.UID("settings of "+string(of.kind)+" of "+string(of.dc.UID))
	a.mu.Lock()
	for key, round := range a.rounds {
		if a.now().Sub(round.at) > 5*round.every {
			delete(a.rounds, key)
		}
	}
	ask, _ := a.rounds[subject].due(a.now(), of.every, nodes)
	a.mu.Unlock()
	if len(ask) > 0 {
		a.beside.do(ctx, subject, types.NamespacedName{Namespace: dc.Namespace, Name: dc.Name}, func(ctx context.Context) { a.pollAll(ctx, poller, subject, of.every, nodes) })
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []overrides.Poll
	for _, n := range nodes {
		if said, heard := a.rounds[subject].said[n.at.pod]; heard && said.of == n.id() {
			out = append(out, said.Poll)
		}
	}
	return out
}

// pollAll asks the nodes whose turn it is.
func (a *asker) pollAll(ctx context.Context, poller Poller, subject types.UID, every time.Duration, nodes []pollNode) {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	a.mu.Lock()
	last := a.rounds[subject]
	a.mu.Unlock()
	ask, turn := last.due(a.now(), every, nodes)
	round := pollRound{at: last.at, every: every, said: map[string]pollAnswer{}, asked: map[string]pollID{}, held: last.stillHeld(a.now()), next: last.next}
	if turn {
		round.at, round.next = a.now(), (last.next+pollSize)%len(nodes)
	}
	var (
		mu   sync.Mutex
		wait sync.WaitGroup
		room = make(chan struct{}, atOnce)
	)
	for _, n := range ask {
		wait.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			items, err := poller.Poll(ctx, n.at)
			a.counted("poll", endOf(err))
			if err != nil {
				return
			}
			poll := overrides.Poll{Pod: n.at.pod, Start: n.start, At: a.now(), Settings: n.judge(items)}
			mu.Lock()
			defer mu.Unlock()
			if mayBeTorn(n.at.kind) {
				held := round.held[n.at.pod].heard(n.start, poll.At, a.sums(items))
				held.mark(poll.Settings)
				round.held[n.at.pod] = held
			}
			round.said[n.at.pod] = pollAnswer{poll, n.id()}
		})
	}
	wait.Wait()
	if len(nodes) <= pollSize {
		round.next = 0
	}
	for _, n := range nodes { // of those whose turn it was not
		if said, heard := last.said[n.at.pod]; heard && round.said[n.at.pod].Pod == "" {
			round.said[n.at.pod] = said
		}
		round.asked[n.at.pod] = last.asked[n.at.pod]
	}
	for _, n := range ask {
		round.asked[n.at.pod] = n.id()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.rounds == nil {
		a.rounds = map[types.UID]pollRound{}
	}
	a.rounds[subject] = round
}
