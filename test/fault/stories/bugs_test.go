package stories

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/kernel"
	"github.com/fairlead-dev/fairlead/internal/observe"
	"github.com/fairlead-dev/fairlead/internal/operator"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/status"
	"github.com/fairlead-dev/fairlead/internal/system/doris"
	"github.com/fairlead-dev/fairlead/test/fault"
)

// The seeded bugs: what operators do wrong, put around the real one. Each must
// make the named check fail in one of its runs; otherwise the check is blind.
var bugs = []struct {
	name string
	seed func(settings) operator.Around
	// tale and faults are the runs; the number of writes is that of the
	// undisturbed story.
	tale   tale
	faults func(writes int) [][]fault.Plan
	caught check
}{
	{
		"notes a step as done before it does it", onDoris(notesTooEarly),
		createSmall, killBefore(2), checkSettles,
	},
	{
		"evicts every outdated Pod at once", onDoris(evictsAll),
		imageChange, undisturbed, checkPromises,
	},
	{
		"writes the status at each look", onDoris(reportsAlways),
		createSmall, undisturbed, checkQuiet,
	},
	{
		"makes another object after a crash", onDoris(makesAnother),
		createSmall, killAfter(1, 2), checkState,
	},
	{
		"takes a refused status for written", func(settings) operator.Around {
			return operator.Around{Writer: func(w kernel.Writer) kernel.Writer { return believer{w} }}
		},
		// Nothing wakes the operator again by itself, or the next look would hide it.
		lacking, refuseLast, checkSettles,
	},
	{
		"begins a roll anew after a crash", onDoris(rollsAnew),
		imageChange, killMiddle, checkReplaced,
	},
}

func undisturbed(int) [][]fault.Plan { return [][]fault.Plan{nil} }

func killBefore(n int) func(int) [][]fault.Plan {
	return func(int) [][]fault.Plan { return [][]fault.Plan{{{At: n, When: fault.Before, Do: fault.Kill}}} }
}

func killAfter(writes ...int) func(int) [][]fault.Plan {
	return func(int) [][]fault.Plan {
		var out [][]fault.Plan
		for _, n := range writes {
			out = append(out, []fault.Plan{{At: n, When: fault.After, Do: fault.Kill}})
		}
		return out
	}
}

func killMiddle(writes int) [][]fault.Plan { return killAfter(writes / 2)(writes) }

// refuseLast refuses the last write, or the one after that: their number varies.
func refuseLast(writes int) [][]fault.Plan {
	var out [][]fault.Plan
	for n := writes; n <= writes+1; n++ {
		out = append(out, []fault.Plan{{At: n, When: fault.Before, Do: fault.Answer, Code: 500}})
	}
	return out
}

// TestSeededBugsAreCaught proves that the checks are not blind. Bugs that only a
// fault brings to light must pass unnoticed without one.
func TestSeededBugsAreCaught(t *testing.T) {
	if !all() {
		t.Skip("FAIRLEAD_FAULT=all runs it")
	}
	s := onStage(t)
	var runs []run
	for _, b := range bugs {
		runs = append(runs, run{tale: b.tale, bug: b.name})
	}
	quietly := s.performAll(t.Context(), runs)
	runs = nil
	caught := map[string][]problem{}
	for i, b := range bugs {
		for _, f := range b.faults(len(quietly[i].writes)) {
			runs = append(runs, run{tale: b.tale, faults: f, bug: b.name, patience: 30 * time.Second})
		}
		if b.faults(1)[0] == nil {
			runs = runs[:len(runs)-1] // it was made
			caught[b.name] = quietly[i].problems
		} else if quietly[i].failed() {
			t.Errorf("the bug %q shows without a fault: %v", b.name, quietly[i].problems)
		}
	}
	references := map[string]*outcome{}
	for i, b := range bugs {
		references[b.name] = quietly[i]
	}
	for i, o := range s.performAll(t.Context(), runs) {
		o.against(references[runs[i].bug])
		caught[runs[i].bug] = append(caught[runs[i].bug], o.problems...)
	}
	found := 0
	for _, b := range bugs {
		i := slices.IndexFunc(caught[b.name], func(p problem) bool { return p.check == b.caught })
		if i < 0 {
			t.Errorf("the bug %q was not caught by the check %q; problems: %v", b.name, b.caught, caught[b.name])
			continue
		}
		found++
		t.Logf("caught: %s. %s", b.name, caught[b.name][i])
	}
	t.Logf("COUNT seeded bugs: %d of %d caught in %d runs", found, len(bugs), len(bugs)+len(runs))
}

// seeded puts the bug that the settings name around the operator.
func seeded(s settings) operator.Around {
	var around operator.Around
	for _, b := range bugs {
		if b.name == s.Bug {
			around = b.seed(s)
		}
	}
	bug := around.Doris
	around.Doris = func(d operator.Doris) operator.Doris {
		if system, is := d.(*doris.System); is { // a roll need not take long here
			system = system.WithPause(shortPause)
			if s.Newer {
				system = system.WithFuture(newerRendering)
			}
			d = system
		}
		if bug != nil {
			d = bug(d)
		}
		return d
	}
	return around
}

// shortPause is how long a roll watches the first Pod of a component.
const shortPause = 200 * time.Millisecond

// newerRendering makes of the newest rendering one that does not exist.
func newerRendering(set *appsv1.StatefulSet) {
	set.Spec.Template.Spec.TerminationGracePeriodSeconds = new(int64(77))
}

func onDoris(around func(settings, operator.Doris) operator.Doris) func(settings) operator.Around {
	return func(s settings) operator.Around {
		return operator.Around{Doris: func(d operator.Doris) operator.Doris { return around(s, d) }}
	}
}

// replanned is the system with another plan.
type replanned struct {
	operator.Doris
	plan func(dc *dorisv1.DorisCluster, w doris.World, p plan.Plan) plan.Plan
}

func (r replanned) Plan(dc *dorisv1.DorisCluster, w doris.World, now time.Time) (plan.Plan, error) {
	p, err := r.Doris.Plan(dc, w, now)
	if err == nil {
		p = r.plan(dc, w, p)
	}
	return p, err
}

// notesTooEarly keeps a list of what it has made, so as not to make it twice,
// and writes it before it makes the things.
func notesTooEarly(s settings, d operator.Doris) operator.Doris {
	return replanned{d, func(_ *dorisv1.DorisCluster, _ doris.World, p plan.Plan) plan.Plan {
		p.Steps = slices.DeleteFunc(slices.Clone(p.Steps), func(step plan.Step) bool {
			a, ok := step.(plan.Apply)
			if !ok || a.Live != "" {
				return false
			}
			file := filepath.Join(s.State, "made-"+strings.ReplaceAll(a.Target().String(), "/", "-"))
			_, err := os.Stat(file)
			if err == nil {
				return true
			}
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				panic(err)
			}
			return false
		})
		return p
	}}
}

// evictsAll does not wait for one Pod before it takes the next.
func evictsAll(_ settings, d operator.Doris) operator.Doris {
	return replanned{d, func(_ *dorisv1.DorisCluster, w doris.World, p plan.Plan) plan.Plan {
		first := slices.IndexFunc(p.Steps, func(step plan.Step) bool { _, ok := step.(plan.Evict); return ok })
		if first < 0 {
			return p
		}
		pods := map[string]*corev1.Pod{}
		for _, list := range w.Pods {
			for i := range list {
				pods[list[i].Name] = &list[i]
			}
		}
		p.Changes, p.Steps = slices.Clone(p.Changes), slices.Clone(p.Steps)
		for i, c := range p.Changes {
			if pod := pods[c.Object.Name]; c.Object.Kind == "Pod" && c.Verdict == plan.VerdictWait && pod != nil {
				p.Changes[i].Verdict = plan.VerdictApply
				p.Steps = slices.Insert(p.Steps, first, plan.Step(plan.Evict{Pod: pod, Reason: "all at once"}))
			}
		}
		return p
	}}
}

// reportsAlways has something new to say each time.
func reportsAlways(_ settings, d operator.Doris) operator.Doris { return chatty{d} }

type chatty struct{ operator.Doris }

func (c chatty) Report(dc *dorisv1.DorisCluster, w doris.World, p plan.Plan, now time.Time) status.Health {
	h := c.Doris.Report(dc, w, p, now)
	if st := dc.Status.FeStatus; st != nil {
		st.ComponentCondition.LastTransitionTime = metav1.NewTime(now).Rfc3339Copy()
	}
	return h
}

// makesAnother makes an object under a free name while a cluster is not Ready,
// and only remembers in memory that it did.
func makesAnother(_ settings, d operator.Doris) operator.Doris {
	return &forgetful{Doris: d, free: map[types.UID]string{}, made: map[types.UID]bool{}}
}

type forgetful struct {
	operator.Doris

	mu   sync.Mutex
	free map[types.UID]string
	made map[types.UID]bool
}

func (f *forgetful) Observe(ctx context.Context, r observe.Reader, dc *dorisv1.DorisCluster) (doris.World, error) {
	w, err := f.Doris.Observe(ctx, r, dc)
	if err != nil {
		return w, err
	}
	for n := 0; ; n++ {
		name := dc.Name + "-token-" + strconv.Itoa(n)
		err := r.Get(ctx, types.NamespacedName{Namespace: dc.Namespace, Name: name}, &corev1.ConfigMap{})
		if apierrors.IsNotFound(err) {
			f.mu.Lock()
			f.free[dc.UID] = name
			f.mu.Unlock()
			return w, nil
		}
		if err != nil {
			return w, err
		}
	}
}

func (f *forgetful) Plan(dc *dorisv1.DorisCluster, w doris.World, now time.Time) (plan.Plan, error) {
	p, err := f.Doris.Plan(dc, w, now)
	f.mu.Lock()
	defer f.mu.Unlock()
	ready := slices.ContainsFunc(dc.GetConditions(), func(c metav1.Condition) bool {
		return c.Type == meta.ConditionReady && c.Status == metav1.ConditionTrue
	})
	if err != nil || ready || f.made[dc.UID] {
		return p, err
	}
	f.made[dc.UID] = true
	token := &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: dc.Namespace, Name: f.free[dc.UID], Labels: map[string]string{dorisv1.LabelOwner: dc.Name},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: dorisv1.GroupVersion.String(), Kind: dorisv1.Kind, Name: dc.Name, UID: dc.UID, Controller: new(true),
			}},
		},
	}
	p.Changes = append(slices.Clone(p.Changes), plan.Change{Object: plan.RefOf(token), Verdict: plan.VerdictApply})
	p.Steps = append([]plan.Step{plan.Apply{Object: token, Manager: doris.FieldManager, Reason: "a token"}}, p.Steps...)
	return p, nil
}

// believer does not look at what the API server answers to a status.
type believer struct{ kernel.Writer }

func (b believer) Status(ctx context.Context, before, now client.Object) (bool, error) {
	wrote, _ := b.Writer.Status(ctx, before, now)
	return wrote, nil
}

// rollsAnew remembers in memory which Pods it has replaced in a roll.
func rollsAnew(_ settings, d operator.Doris) operator.Doris {
	return &amnesiac{Doris: d, began: time.Now(), rolling: map[types.UID]bool{}}
}

type amnesiac struct {
	operator.Doris
	began time.Time

	mu      sync.Mutex
	rolling map[types.UID]bool
}

func (a *amnesiac) Plan(dc *dorisv1.DorisCluster, w doris.World, now time.Time) (plan.Plan, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	pods := map[string][]corev1.Pod{}
	for component, list := range w.Pods {
		set := w.StatefulSets[doris.StatefulSetName(dc.Name, dorisv1.ComponentType(component))]
		for _, p := range list {
			if set != nil && p.Labels[appsv1.ControllerRevisionHashLabelKey] != set.Status.UpdateRevision {
				a.rolling[dc.UID] = true
			}
		}
		for _, p := range list {
			p := *p.DeepCopy()
			if a.rolling[dc.UID] && p.CreationTimestamp.Time.Before(a.began.Add(-time.Second)) {
				p.Labels[appsv1.ControllerRevisionHashLabelKey] = "unknown"
			}
			pods[component] = append(pods[component], p)
		}
	}
	w.Pods = pods
	return a.Doris.Plan(dc, w, now)
}
