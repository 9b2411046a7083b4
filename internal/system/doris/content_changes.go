package doris

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/diff"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/system/doris/conf"
)

// contentChanges lists, key by key, how the content of a ConfigMap differs from
// what the Pods of a component have.
func contentChanges(dc *dorisv1.DorisCluster, kind dorisv1.ComponentType, was, now *corev1.ConfigMap) []plan.Change {
	var changes []plan.Change
	add := func(path, from, to string) {
		changes = append(changes, plan.Change{
			Object: plan.Ref{Kind: "ConfigMap", Namespace: dc.Namespace, Name: now.Name}, Path: path, From: from, To: to,
			Cause: plan.CauseConfig, Effect: plan.EffectRestartPod, Reason: reasonConfigUpdatePolicy,
			Message: fmt.Sprintf("the Pods of %s go on with what they have, also when they are restarted or replaced, until a person accepts (spec.configUpdatePolicy is %s)", kind, updatePolicy(dc)),
		})
	}
	if was == nil {
		add(fmt.Sprintf("for %s: data", kind), "(the copy of it was deleted)", "as it is now")
		return changes
	}
	for _, key := range unionKeys(was.Data, now.Data) {
		before, after := was.Data[key], now.Data[key]
		if before == after {
			continue
		}
		path := fmt.Sprintf("for %s: data[%q]", kind, key)
		if strings.HasSuffix(key, ".conf") {
			confChanges(path, before, after, add)
			continue
		}
		add(path, sized(before), sized(after))
	}
	for _, key := range unionKeys(was.BinaryData, now.BinaryData) {
		if before, after := string(was.BinaryData[key]), string(now.BinaryData[key]); before != after {
			add(fmt.Sprintf("for %s: binaryData[%q]", kind, key), sized(before), sized(after))
		}
	}
	return changes
}

// reasonConfigUpdatePolicy says that a changed ConfigMap is not followed because
// of the policy of the resource.
const reasonConfigUpdatePolicy = "ConfigUpdatePolicy"

// confChanges lists the settings that differ between two versions of a file. A
// file of which only comments, blanks or order differ is one change.
func confChanges(path, before, after string, add func(path, from, to string)) {
	was, now := settingsIn(before), settingsIn(after)
	found := false
	for _, key := range unionKeys(was, now) {
		from, had := was[key]
		to, has := now[key]
		if had == has && from == to {
			continue
		}
		found = true
		if diff.Sensitive(key) {
			from, to = withheldIf(had), withheldIf(has)
		}
		add(path+"."+key, from, to)
	}
	if !found {
		add(path, sized(before), sized(after))
	}
}

func settingsIn(text string) map[string]string {
	settings := map[string]string{}
	for _, e := range conf.Parse([]byte(text)).Entries() {
		settings[e.Key] = e.Value // the last one counts
	}
	return settings
}

func withheldIf(there bool) string {
	if there {
		return "(withheld)"
	}
	return ""
}

// sized describes a text that is too long to be printed.
func sized(text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf("%d bytes", len(text))
}

func unionKeys[V any](a, b map[string]V) []string {
	keys := maps.Clone(a)
	if keys == nil {
		keys = map[string]V{}
	}
	maps.Copy(keys, b)
	return slices.Sorted(maps.Keys(keys))
}
