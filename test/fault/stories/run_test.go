package stories

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/internal/system/doris"
	"github.com/fairlead-dev/fairlead/test/fault"
	"github.com/fairlead-dev/fairlead/test/inpods"
	"github.com/fairlead-dev/fairlead/test/story"
)

const (
	// patience is how long a run may take to settle; undisturbed it takes seconds. A
	// disruption budget may need two minutes to forget a Pod that has gone.
	patience = 150 * time.Second
	// calm is how long there must be no write until a run counts as settled.
	calm = 2 * time.Second
	// awake is how long an operator that was started needs to have watched all,
	// until it counts as one that has seen what there is.
	awake = 2 * time.Second
)

// quiet is how long there must be no write after that, in two halves: in
// between the operator is started again.
func quiet() time.Duration {
	if all() {
		return 10 * time.Second
	}
	return 4 * time.Second
}

// tale is one story.
type tale struct {
	name string
	// before makes what is there before the operator first comes. With no set-up
	// it comes when the story begins.
	before func(context.Context, *scene) error
	// setup brings about what the story begins with, undisturbed.
	setup func(context.Context, *scene) error
	// act is what happens; faults happen from here on.
	act func(context.Context, *scene) error
	// unsettled says what is missing until the story has come to its end.
	unsettled func(context.Context, *scene) string
	// replaced is how often the story may replace each Pod.
	replaced int
	// deletes tells that the story itself deletes its cluster.
	deletes bool
	// processes has a process run in each Pod, by the file that the Pod mounts.
	processes bool
	// database has the Pods run a database, to which the operator speaks.
	database bool
}

// run is one telling of a story.
type run struct {
	tale   tale
	faults []fault.Plan
	bug    string
	// lists has the operator fill its caches by lists, which can be old, and not
	// by watches that begin with all there is.
	lists bool
	// patience is the package's unless it is set.
	patience time.Duration
}

func (r run) String() string {
	name := r.tale.name
	if r.bug != "" {
		name += " with the bug " + r.bug
	}
	for i, f := range r.faults {
		if i == 0 {
			name += ":"
		} else {
			name += ","
		}
		name += " " + f.String()
	}
	return name
}

// check names what a run is held against.
type check string

const (
	checkRun      check = "run"        // the test itself could do its work
	checkSettles  check = "settles"    // it came to its end in time
	checkQuiet    check = "quiet"      // no write after that
	checkState    check = "end state"  // as undisturbed
	checkReplaced check = "replaced"   // no Pod more often than the story says
	checkPromises check = "promises"   // of package story, at any moment
	checkRights   check = "rights"     // nothing was forbidden
	checkProcess  check = "no failure" // no panic, no race, no end by itself
)

type problem struct {
	check check
	text  string
}

func (p problem) String() string { return string(p.check) + ": " + p.text }

// outcome is what came of a run.
type outcome struct {
	writes   []fault.Write
	fired    []fault.Plan
	old      int // lists that were old
	state    map[string]string
	problems []problem
	log      string
	took     time.Duration
}

func (o *outcome) sayf(c check, format string, args ...any) {
	o.problems = append(o.problems, problem{c, fmt.Sprintf(format, args...)})
}

// failed tells whether the run failed a check (any, if none is given).
func (o *outcome) failed(checks ...check) bool {
	return slices.ContainsFunc(o.problems, func(p problem) bool { return len(checks) == 0 || slices.Contains(checks, p.check) })
}

// scene is where a run takes place.
type scene struct {
	*stage
	namespace string
	dir       string // of this run alone
	proxy     *fault.Proxy
	op        *process
	history   *story.History
	db        *database // nil unless the tale has one
	// processes run in the Pods, and are reached through relay; nil unless the tale
	// has them.
	processes *inpods.Nodes
	relay     *relay
}

// perform makes a run in a namespace of its own, with an operator and a proxy
// of its own.
func (s *stage) perform(ctx context.Context, r run) *outcome {
	s.alive <- struct{}{}
	defer func() { <-s.alive }()
	s.active <- struct{}{}
	began, out := time.Now(), &outcome{}
	sc, err := s.open(ctx, r)
	if err != nil {
		<-s.active
		out.sayf(checkRun, "%v", err)
		return out
	}
	defer func() {
		sc.op.close()
		sc.proxy.Close()
		if sc.db != nil {
			_ = sc.db.close() // nodes are killed
		}
		sc.closeProcesses()
		if err := errors.Join(s.clear(ctx, sc.namespace), os.RemoveAll(sc.dir)); err != nil {
			out.sayf(checkRun, "clear up: %v", err)
		}
	}()
	before, ok := sc.tell(ctx, r, out)
	out.took = time.Since(began)
	<-s.active
	if ok {
		sc.rest(ctx, out)
	}
	sc.judge(ctx, r, before, out)
	return out
}

func (s *stage) open(ctx context.Context, r run) (*scene, error) {
	namespace, err := s.namespace(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "fairlead-fault-")
	if err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	sc := &scene{stage: s, namespace: namespace, dir: dir}
	with := settings{Kubeconfig: kubeconfig, Namespace: namespace, Bug: r.bug, State: dir, Lists: r.lists}
	if r.tale.database {
		if sc.db, err = openDatabase(ctx, s.client, namespace, filepath.Join(dir, "doris")); err != nil {
			return nil, err
		}
		with.Database = sc.db.address()
	}
	if r.tale.processes {
		if err := sc.openProcesses(ctx); err != nil {
			return nil, err
		}
		with.Relay = sc.relay.listener.Addr().String()
	}
	sc.op = newProcess(dir, with)
	if sc.proxy, err = fault.Start(fault.Options{Upstream: s.config, Kill: sc.op.crash}); err != nil {
		return nil, err
	}
	if err := story.WriteKubeconfig(kubeconfig, sc.proxy.Config(), s.token); err != nil {
		return nil, errors.Join(err, sc.closed())
	}
	if sc.history, err = story.Watch(s.client, namespace); err != nil {
		return nil, errors.Join(err, sc.closed())
	}
	return sc, nil
}

func (sc *scene) closed() error {
	sc.proxy.Close()
	return nil
}

// tell tells the story up to its end. It returns how often each Pod had been
// made before, and whether the end was reached.
func (sc *scene) tell(ctx context.Context, r run, out *outcome) (before map[string]int, ok bool) {
	if r.tale.before != nil {
		if err := r.tale.before(ctx, sc); err != nil {
			out.sayf(checkRun, "before the operator: %v", err)
			return nil, false
		}
	}
	if r.tale.setup != nil {
		sc.op.launch()
		if err := r.tale.setup(ctx, sc); err != nil {
			out.sayf(checkRun, "set-up: %v", err)
			return nil, false
		}
		// No fault happens here: less patience is for what a fault or a bug spoils.
		if missing := sc.await(ctx, run{tale: r.tale}, settledCluster); missing != "" {
			out.sayf(checkRun, "set-up did not settle: %s", missing)
			return nil, false
		}
	}
	before = sc.history.Made()
	if r.tale.deletes {
		sc.history.Deleting()
	}
	sc.proxy.Arm(r.faults...)
	if err := sc.act(ctx, r); err != nil {
		out.sayf(checkRun, "act: %v", err)
		return before, false
	}
	if missing := sc.await(ctx, r, r.tale.unsettled); missing != "" {
		out.sayf(checkSettles, "%s", missing)
		return before, false
	}
	return before, true
}

// act acts; a kill at write 0 happens around it. What was there before is met by
// an operator that comes after that.
func (sc *scene) act(ctx context.Context, r run) error {
	if r.tale.before == nil {
		sc.op.launch()
	}
	defer sc.op.launch()
	for _, f := range r.faults {
		if f.At == 0 && f.When == fault.Before {
			sc.op.end(syscall.SIGKILL)
		}
		if f.At == 0 && f.When == fault.After {
			defer sc.op.crash()
		}
	}
	return r.tale.act(ctx, sc)
}

// await waits until nothing is missing and there is calm. It returns what is
// missing when patience is at its end.
func (sc *scene) await(ctx context.Context, r run, unsettled func(context.Context, *scene) string) string {
	limit := patience
	if r.patience > 0 {
		limit = r.patience
	}
	deadline := time.Now().Add(limit)
	for {
		missing := unsettled(ctx, sc)
		if missing == "" {
			if missing = sc.uncalm(calm); missing == "" {
				return ""
			}
		}
		if err := sc.op.trouble(); err != nil {
			return err.Error()
		}
		if time.Now().After(deadline) {
			return fmt.Sprintf("not in %s: %s", limit, missing)
		}
		time.Sleep(100 * time.Millisecond) // the pace of polling
	}
}

// uncalm names the last write if it was made within the given time. An operator
// that is not back after a crash is no calm one.
func (sc *scene) uncalm(within time.Duration) string {
	if last := sc.proxy.LastWatch(); last.Before(sc.op.since()) || time.Since(last) < awake {
		return "the operator has only just come"
	}
	for _, list := range [][]fault.Write{sc.proxy.Writes(), sc.proxy.Unnumbered()} {
		if n := len(list); n > 0 && time.Since(list[n-1].At) < within {
			return "it still writes: " + list[n-1].String()
		}
	}
	return ""
}

// rest holds that there is quiet, also for an operator that starts anew.
func (sc *scene) rest(ctx context.Context, out *outcome) {
	numbered, others := len(sc.proxy.Writes()), len(sc.proxy.Unnumbered())
	half := func() {
		select {
		case <-ctx.Done():
		case <-time.After(quiet() / 2):
		}
	}
	half()
	watches := sc.proxy.Watches()
	sc.op.end(syscall.SIGTERM)
	looked := sc.op.reconciles()
	sc.op.launch()
	_, err := sc.doris(ctx)
	there := err == nil // something that it will look at
	for deadline := time.Now().Add(patience); sc.proxy.Watches() == watches || there && sc.op.reconciles() == looked; time.Sleep(50 * time.Millisecond) {
		if err := sc.op.trouble(); err != nil || time.Now().After(deadline) {
			out.sayf(checkProcess, "it did not come back after a restart: %v", err)
			return
		}
	}
	half()
	for _, w := range slices.Concat(sc.proxy.Writes()[numbered:], sc.proxy.Unnumbered()[others:]) {
		// What nodes say of themselves is heard once a minute: a node that was started in
		// the tale may be news after it.
		if w.Resource == "configmaps" && w.Name == doris.ObservedName("doris") {
			continue
		}
		// client-go counts events that repeat by a patch, and when that fails (two
		// at once: there is nothing to patch yet) tries again ten seconds later.
		if w.Resource == "events" && w.Verb == http.MethodPatch {
			continue
		}
		out.sayf(checkQuiet, "%s, %s after the operator was last started", w, w.At.Sub(sc.op.since()).Round(time.Millisecond))
	}
}

// judge holds the run against all but the state of another.
func (sc *scene) judge(ctx context.Context, r run, before map[string]int, out *outcome) {
	out.writes, out.fired, out.old = sc.proxy.Writes(), sc.proxy.Fired(), sc.proxy.OldLists()
	for _, w := range slices.Concat(out.writes, sc.proxy.Unnumbered()) {
		if w.Code == http.StatusForbidden {
			out.sayf(checkRights, "%s", w)
		}
	}
	for _, broken := range sc.history.End() {
		out.sayf(checkPromises, "%s", broken)
	}
	made := sc.history.Made()
	for _, name := range slices.Sorted(maps.Keys(made)) {
		if n := made[name] - max(before[name], 1); before != nil && n > r.tale.replaced {
			out.sayf(checkReplaced, "%s was replaced %d times", name, n)
		}
	}
	var err error
	if out.state, err = sc.states.of(ctx, sc.namespace); err != nil {
		out.sayf(checkRun, "%v", err)
	}
	out.log = sc.op.logged()
	for _, bad := range []string{"WARNING: DATA RACE", "panic:", "reconcile panicked"} {
		if strings.Contains(out.log, bad) {
			out.sayf(checkProcess, "the operator's log has %q", bad)
		}
	}
	if err := sc.op.trouble(); err != nil {
		out.sayf(checkProcess, "%v", err)
	}
}
