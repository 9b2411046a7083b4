package doris

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"sync"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/diff"
	"github.com/fairlead-dev/fairlead/internal/system/doris/client/setting"
)

// Values of settings are asked of the nodes when a person wants to see them, and are kept
// nowhere.

// Answer is what one node says of its settings.
type Answer struct {
	Component dorisv1.ComponentType `json:"component"`
	Pod       string                `json:"pod"`
	// Silent says why the node does not answer.
	Silent string  `json:"silent,omitempty"`
	Values []Value `json:"values"`
}

// Value is the value of a setting that is in force on a node.
type Value struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	// Hidden tells that the value may be a credential, or that the node does not show it:
	// Value is empty.
	Hidden  bool `json:"hidden,omitempty"`
	Mutable bool `json:"mutable"`
}

// AskValues asks all nodes of a cluster for their settings and returns what they say, in
// the order of components and ordinals. Which settings are wanted of a component is for the
// caller to say, by the names that nodes show.
func AskValues(ctx context.Context, dc *dorisv1.DorisCluster, w World, nodes Nodes, wanted func(dorisv1.ComponentType, string) bool) []Answer {
	p := planner{dc: dc, world: w.standIns(dc)}
	var out []Answer
	var at []nodeAddress
	for _, kind := range polled {
		if specOf(dc, kind) == nil {
			continue
		}
		for _, pod := range sortedPods(w.Pods[string(kind)]) {
			a, is := p.address(kind, &pod), Answer{Component: kind, Pod: pod.Name, Values: []Value{}}
			_, recorded := readAccepted(p.world.StatefulSets[StatefulSetName(dc.Name, kind)])
			switch {
			case a.host == "" || startOf(&pod) == "":
				is.Silent = "its container does not run"
			case !recorded:
				is.Silent = "the operator has not recorded yet where it listens"
			}
			out, at = append(out, is), append(at, a)
		}
	}
	var wait sync.WaitGroup
	room := make(chan struct{}, atOnce)
	for i := range out {
		if out[i].Silent != "" {
			continue
		}
		wait.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			items, err := nodes.Settings(ctx, at[i])
			if err != nil {
				out[i].Silent = err.Error()
				return
			}
			out[i].Values = valuesOf(items, func(key string) bool { return wanted(out[i].Component, key) })
		})
	}
	wait.Wait()
	return out
}

// valuesOf are the values that are wanted, in the order of keys.
func valuesOf(items []setting.Item, wanted func(key string) bool) []Value {
	out := []Value{}
	for _, item := range items {
		if !wanted(item.Key) {
			continue
		}
		v := Value{Key: item.Key, Value: item.Value, Mutable: item.Mutable, Hidden: item.Hidden() || diff.Sensitive(item.Key) || mayHoldCredential(item.Value)}
		if v.Hidden {
			v.Value = ""
		}
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b Value) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// withUser finds the user and password of a URL.
var withUser = regexp.MustCompile(`://[^/@\s]*:[^/@\s]*@`)

// mayHoldCredential tells of the value of a setting, such as options of a process or a URL,
// that it names a credential.
func mayHoldCredential(value string) bool {
	return diff.Sensitive(value) || withUser.MatchString(value)
}

// SameSetting tells whether two names are of one setting: nodes show some with a prefix.
func SameSetting(a, b string) bool { return sameName(a, b) }
