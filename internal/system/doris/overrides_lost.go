package doris

import (
	"fmt"
	"slices"
	"strings"
	"time"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/status"
	"github.com/fairlead-dev/fairlead/internal/system/doris/runtimeconfig"
)

// ConditionRuntimeConfigLost is there, and True, while settings that were changed in a
// running node are not in force any more since its container was another one.
const ConditionRuntimeConfigLost = "RuntimeConfigurationLost"

// reasonRuntimeConfigLost is its reason.
const reasonRuntimeConfigLost = "RuntimeConfigLost"

// lostCondition names what nodes have lost, as far as nobody has said to know of it.
func (p planner) lostCondition(extra map[string]status.Verdict) {
	known, fault := p.lossesKnown()
	var lost, other, why []string
	var until time.Time
	for _, kind := range polled {
		losses := Observed(p.world, p.dc.Name, kind).Losses(known)
		if len(losses.Lost) > 0 {
			why = append(why, p.lostBy(kind))
		}
		lost, other = slices.Concat(lost, losses.Lost), slices.Concat(other, losses.Other)
		if losses.Until.After(until) {
			until = losses.Until
		}
	}
	var parts []string
	if len(lost) > 0 {
		parts = append(parts, "settings that were changed in running nodes are not in force since those were started again: "+strings.Join(lost, "; ")+" ("+strings.Join(why, "; ")+")")
	}
	if len(other) > 0 {
		parts = append(parts, "settings that were changed in running nodes have another value since those were started again: "+strings.Join(other, "; ")+
			" (they were changed shortly before or in memory alone, or the node ended while it wrote its file)")
	}
	if len(parts) == 0 {
		return
	}
	extra[ConditionRuntimeConfigLost] = status.Verdict{
		True: true, Reason: reasonRuntimeConfigLost, Tell: true,
		Message: strings.Join(parts, ". ") + fmt.Sprintf(". Set them again with persist=true, or say that you know of it with the annotation %s=%s%s",
			meta.AnnotationLostSettingsKnown, until.Format(time.RFC3339), fault),
	}
}

// lostBy says why nodes of a component can have lost settings.
func (p planner) lostBy(kind dorisv1.ComponentType) string {
	r := p.runtimesAsTheyAre()[kind]
	switch {
	case r == nil || r.State == runtimeconfig.Unavailable:
		return "those of " + string(kind) + " are not kept"
	case mayBeTorn(kind):
		return "of " + string(kind) + ": the node ended while it wrote " + runtimeconfig.Kind(kind).CustomFile() + ", which is empty or cut short then, or they were changed in memory alone"
	}
	return "of " + string(kind) + ": they were changed in memory alone"
}

// lossesKnown is until when a person knows what was lost, and what is wrong with what was
// written of it.
func (p planner) lossesKnown() (known time.Time, fault string) {
	text := p.dc.Annotations[meta.AnnotationLostSettingsKnown]
	if text == "" {
		return time.Time{}, ""
	}
	known, err := time.Parse(time.RFC3339, text)
	switch {
	case err != nil:
		return time.Time{}, "; what it says now is no time"
	case known.After(p.now.Add(clockSkew)):
		return time.Time{}, "; what it says now is a time to come, which counts for nothing"
	}
	return known, ""
}

// clockSkew is how far the clocks of people may be ahead of ours.
const clockSkew = 5 * time.Minute
