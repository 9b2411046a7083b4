package doris

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/system/doris/client"
	"github.com/fairlead-dev/fairlead/internal/system/doris/client/setting"
)

// askEvery is how soon a node is asked the same thing again.
const askEvery = time.Minute

// atOnce is how many nodes of a cluster are asked at the same time.
const atOnce = 16

// nodeAddress is one node and where it listens.
type nodeAddress struct {
	cluster     *dorisv1.DorisCluster
	kind        dorisv1.ComponentType
	pod         string
	uid         types.UID
	host        string
	query, http int32
	// account is the version of the Secret that names the account.
	account string
	// tls is how it is asked over TLS; nil where it speaks none.
	tls *encryption
}

// Nodes speaks to the nodes of clusters. Errors hold no secret.
type Nodes interface {
	// Settings lists all settings of a node.
	Settings(ctx context.Context, at nodeAddress) ([]setting.Item, error)
	// Set sets one setting in the running process and reads it back.
	Set(ctx context.Context, at nodeAddress, change setting.Change) error
}

// refusedError says that a node answered and does not have the value now.
type refusedError struct{ reason string }

func (e *refusedError) Error() string { return e.reason }

// asker asks nodes, and remembers for a short time what they said.
type asker struct {
	nodes  Nodes
	now    func() time.Time
	beside *meanwhile
	// counted is told of each call and how it ended.
	counted func(call, outcome string)

	mu    sync.Mutex
	heard map[types.UID]heard
	// seen is what the databases of clusters said last.
	seen map[types.UID]sighting
	// seed is that of sums of values, which are in no other process.
	seed maphash.Seed
	// rounds is what the nodes of components said of their settings last.
	rounds map[types.UID]pollRound
	// dumps are the last files of metadata that masters were asked for.
	dumps map[types.UID]MetadataDump
}

// heard is what the node of a Pod said last.
type heard struct {
	report    NodeReport
	about     string
	at        time.Time
	refusedAt time.Time
}

func newAsker(nodes Nodes, now func() time.Time) *asker {
	return &asker{nodes: nodes, now: now, seed: maphash.MakeSeed(), beside: newMeanwhile(), counted: func(string, string) {}, heard: map[types.UID]heard{}, seen: map[types.UID]sighting{}, dumps: map[types.UID]MetadataDump{}}
}

// questions lists the nodes that have to be asked before it can be planned. In a
// cluster whose processes have the accepted settings there are none.
func (s *System) questions(dc *dorisv1.DorisCluster, w World) map[string]question {
	p := s.planner(dc, w)
	p.asked = map[string]question{}
	for kind, has := range p.contents() {
		recorded, known := readAccepted(w.StatefulSets[StatefulSetName(dc.Name, kind)])
		if !known || len(has.live) == 0 && !p.everLive(kind) {
			continue
		}
		recorded.Content, recorded.Live = has.copies, has.live
		behind, _, _ := p.behindOf(kind, recorded)
		for _, b := range behind {
			p.report(kind, b.pod, recorded.newest())
		}
	}
	return p.asked
}

// everLive tells whether something was ever set in a running process of a
// component.
func (p planner) everLive(kind dorisv1.ComponentType) bool {
	pods := p.world.Pods[string(kind)]
	for i := range pods {
		if pods[i].Annotations[meta.AnnotationLive] != "" {
			return true
		}
	}
	return false
}

// observeNodes asks the nodes that have to be asked. One that does not answer is
// an answer too; one that takes its time counts as not asked yet.
func (s *System) observeNodes(ctx context.Context, dc *dorisv1.DorisCluster, w *World) {
	if s.asker == nil {
		return
	}
	questions := s.questions(dc, *w)
	if len(questions) == 0 {
		return
	}
	p := s.planner(dc, *w)
	w.Nodes = map[string]NodeReport{}
	var (
		mu   sync.Mutex
		wait sync.WaitGroup
		room = make(chan struct{}, atOnce)
	)
	for _, name := range sortedKeys(questions) {
		q := questions[name]
		wait.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			report, answered := s.asker.ask(ctx, p.address(q.kind, q.pod), startOf(q.pod), q.about)
			mu.Lock()
			defer mu.Unlock()
			if answered {
				w.Nodes[name] = report
			}
		})
	}
	wait.Wait()
}

// ask returns what a node says, if it says it in time. The same question is asked
// again after a while only; another one, or one of another process, at once.
func (a *asker) ask(ctx context.Context, at nodeAddress, start, about string) (report NodeReport, answered bool) {
	a.mu.Lock()
	a.forget()
	last, known := a.heard[at.uid]
	a.mu.Unlock()
	same := known && last.report.Start == start && last.about == about
	if same && a.now().Sub(last.at) < askEvery {
		return last.report, true
	}
	cluster := types.NamespacedName{Namespace: at.cluster.Namespace, Name: at.cluster.Name}
	a.beside.do(ctx, at.uid, cluster, func(ctx context.Context) { a.askNode(ctx, at, start, about) })
	a.mu.Lock()
	defer a.mu.Unlock()
	h, known := a.heard[at.uid]
	return h.report, known && h.report.Start == start && h.about == about
}

// askNode asks a node and keeps what it said.
func (a *asker) askNode(ctx context.Context, at nodeAddress, start, about string) {
	items, err := a.nodes.Settings(ctx, at)
	a.counted("settings", endOf(err))
	a.mu.Lock()
	defer a.mu.Unlock()
	last := a.heard[at.uid]
	h := heard{report: NodeReport{Start: start}, about: about, at: a.now()}
	if h.report.Items = items; err != nil {
		h.report = unheardOf(start, err)
	}
	if last.report.Start == start && last.about == about && h.at.Sub(last.refusedAt) < askEvery {
		h.report.Refused, h.refusedAt = last.report.Refused, last.refusedAt
	}
	a.heard[at.uid] = h
}

// forget drops what nobody asked for since long: nothing is kept for more than a
// few minutes. The lock is held.
func (a *asker) forget() {
	for uid, h := range a.heard {
		if a.now().Sub(h.at) > 3*askEvery && a.now().Sub(h.refusedAt) > 3*askEvery {
			delete(a.heard, uid)
		}
	}
}

// endOf is how a call ended, in one word.
func endOf(err error) string {
	if _, refused := errors.AsType[*refusedError](err); refused {
		return "refused"
	}
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, client.ErrDenied), errors.Is(err, client.ErrUntrusted):
		return "denied"
	case errors.Is(err, client.ErrRefused):
		return "refused"
	}
	return "unreachable"
}

// unheardOf says why a node said nothing.
func unheardOf(start string, err error) NodeReport {
	reason, message := unanswered(err)
	return NodeReport{Start: start, Reason: reason, Message: message}
}

// setSettings sets settings in one running process.
type setSettings struct {
	at      nodeAddress
	changes []setting.Change
}

// Describe names the settings without their values.
func (o setSettings) Describe() string {
	return fmt.Sprintf("set in the running process of %s: %s", o.at.pod, listed(keysOf(o.changes)))
}

// String is Describe: values are in no print.
func (o setSettings) String() string { return o.Describe() }

// GoString is Describe.
func (o setSettings) GoString() string { return o.Describe() }

// set carries the operation out. What is not done is seen when the node is asked
// again, and is no failure of the reconcile.
func (a *asker) set(ctx context.Context, o setSettings) error {
	refused := map[string]string{}
	var failed error
	for _, c := range o.changes {
		err := a.nodes.Set(ctx, o.at, c)
		a.counted("set", endOf(err))
		if no, is := errors.AsType[*refusedError](err); is {
			refused[c.Key] = no.reason
			continue
		}
		if failed = err; err != nil {
			break
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	h := a.heard[o.at.uid]
	h.at = time.Time{} // asked again
	if failed != nil {
		h.report, h.at = unheardOf(h.report.Start, failed), a.now()
	}
	if h.report.Refused = refused; len(refused) > 0 {
		h.refusedAt = a.now()
	}
	a.heard[o.at.uid] = h
	switch {
	case failed != nil:
		return &plan.NotDoneError{Reason: failed.Error()}
	case len(refused) > 0:
		key := slices.Min(sortedKeys(refused))
		return &plan.NotDoneError{Reason: key + ": " + refused[key]}
	}
	return nil
}
