package doris

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// While a cluster gets another version the master moves no tablets, as Doris asks for:
// each backend that is away for a minute would set a balancing off. What is stopped is
// written down before, and only that is put on again. The settings are in the memory
// of the master alone, so another master is told anew.

// balancing are the settings of the master that stop it.
var balancing = []string{"disable_balance", "disable_colocate_balance", "disable_tablet_scheduler"}

// Balancer tells the master whether to move tablets.
type Balancer interface {
	// Balancing is what the settings of balancing are, of those that the master has.
	Balancing(ctx context.Context, at databaseAddress) (map[string]string, error)
	// Balance sets one of them.
	Balance(ctx context.Context, at databaseAddress, key, value string) error
}

// balanceStopped are the settings that the operator set, or is about to.
func balanceStopped(set *appsv1.StatefulSet) []string {
	var keys []string
	if set == nil || json.Unmarshal([]byte(set.Annotations[meta.AnnotationBalanceStopped]), &keys) != nil {
		return nil
	}
	return slices.DeleteFunc(keys, func(k string) bool { return !slices.Contains(balancing, k) })
}

func (p planner) frontends() *appsv1.StatefulSet {
	return p.world.StatefulSets[StatefulSetName(p.dc.Name, dorisv1.ComponentFE)]
}

// upgrading tells whether Pods are to be replaced by ones of another version.
func (p planner) upgrading() bool {
	for _, kind := range versioned {
		set := p.world.StatefulSets[StatefulSetName(p.dc.Name, kind)]
		if set == nil || !pinned(set) {
			continue
		}
		want := tagOf(mainImage(set.Spec.Template.Spec, kind))
		pods := p.world.Pods[string(kind)]
		for i := range pods {
			if tagOf(mainImage(pods[i].Spec, kind)) != want && outdated(set, &pods[i], true) {
				return true
			}
		}
	}
	return false
}

// halted tells whether the roll of any component has stopped.
func (p planner) halted() bool {
	return slices.ContainsFunc(rendered, func(kind dorisv1.ComponentType) bool {
		_, stopped := p.stopped(kind)
		return stopped
	})
}

// holdsBalance tells whether no tablets are to be moved now, and the master can be told.
func (p planner) holdsBalance() bool {
	db := p.world.Database
	return db != nil && db.Known && db.Balancing != nil && !p.unheeded() && !p.halted() && p.upgrading()
}

// holdBalance stops balancing before the first Pod of another version comes. It tells
// what is still to come before a Pod may go.
func (p planner) holdBalance(r rolling) (first string) {
	db, set := p.world.Database, p.frontends()
	if set == nil || !p.holdsBalance() {
		return ""
	}
	recorded := balanceStopped(set)
	var moving, open []string
	for _, key := range balancing {
		if db.Balancing[key] != "false" {
			continue // it is stopped, or this version has no such setting
		}
		if moving = append(moving, key); !slices.Contains(recorded, key) {
			open = append(open, key)
		}
	}
	const waits = "balancing to be stopped for the upgrade"
	if len(open) > 0 {
		if !r.busy[set.Name] {
			p.recordBalance(set, encoded(append(recorded, open...)), "record what is stopped for the upgrade")
		}
		return waits
	}
	for _, key := range moving {
		if refused := p.balance(set, key, "true", "no tablets are moved during an upgrade"); refused == "" {
			first = waits
		}
	}
	return first
}

// resumeBalance puts balancing on again. It tells what is still to come.
func (p planner) resumeBalance(r rolling) (first string) {
	db, set := p.world.Database, p.frontends()
	recorded := balanceStopped(set)
	if len(recorded) == 0 || db == nil {
		return ""
	}
	const waits = "balancing to be put on again"
	if !db.Known || db.Balancing == nil {
		return waits
	}
	for _, key := range recorded {
		if db.Balancing[key] == "true" {
			p.balance(set, key, "false", "the upgrade is over")
			first = waits
		}
	}
	if first == "" && !r.busy[set.Name] {
		p.recordBalance(set, nil, "balancing is as it was before the upgrade")
		first = waits
	}
	return first
}

func (p planner) recordBalance(set *appsv1.StatefulSet, value any, reason string) {
	p.write(note{on: set, key: meta.AnnotationBalanceStopped, is: value, cause: plan.CauseUser, reason: reason, message: reason})
}

// balance plans one setting of the master.
func (p planner) balance(set *appsv1.StatefulSet, key, value, message string) (refused string) {
	at, _, _ := p.database()
	o := setBalance{at: at, key: key, value: value}
	return p.tell(plan.Change{
		Object: plan.RefOf(set), Path: key + " of the master", To: value, Cause: plan.CauseUser, Effect: plan.EffectNone,
		Verdict: plan.VerdictApply, Reason: meta.ReasonProgressing, Message: message,
	}, o, key, meta.ReasonProgressing)
}

// setBalance sets one setting of the master.
type setBalance struct {
	at         databaseAddress
	key, value string
}

// Describe says what is done.
func (o setBalance) Describe() string {
	return fmt.Sprintf("set %s = %s on the master", o.key, o.value)
}

// balances carries one out, and remembers what the master refuses.
func (a *asker) balances(ctx context.Context, o setBalance) error {
	balancer, can := a.nodes.(Balancer)
	if !can {
		return fmt.Errorf("doris cannot be asked to %s", o.Describe())
	}
	ctx, cancel := context.WithTimeout(ctx, databaseTimeout)
	defer cancel()
	err := balancer.Balance(ctx, o.at, o.key, o.value)
	return a.told(o.at, o.key, err, answeredNo(err))
}

// Balancing implements Balancer.
func (r reached) Balancing(ctx context.Context, at databaseAddress) (map[string]string, error) {
	doris, node, _, err := r.master(ctx, at)
	if err != nil {
		return nil, err
	}
	items, err := doris.FrontendConfig(ctx, node)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for i := range items {
		if slices.Contains(balancing, items[i].Key) {
			out[items[i].Key] = strings.ToLower(items[i].Value)
		}
	}
	return out, nil
}

// Balance implements Balancer.
func (r reached) Balance(ctx context.Context, at databaseAddress, key, value string) error {
	doris, node, _, err := r.master(ctx, at)
	if err != nil {
		return err
	}
	return doris.SetFrontendConfig(ctx, node, key, value)
}
