package runtimeconfig

import (
	"fmt"

	"github.com/fairlead-dev/fairlead/internal/plan"
)

// Policy says what becomes of the components of a cluster that are made for the
// first time. Those that exist go on as their own records say.
type Policy string

// The policies.
const (
	// Automatic keeps settings where a volume is there that is safe for it.
	Automatic Policy = "automatic"
	// Legacy leaves everything as the existing operator has it.
	Legacy Policy = "legacy"
	// Disabled was asked for before the cluster was first deployed.
	Disabled Policy = "disabled"
	// Enabled refuses to run a component whose settings cannot be kept.
	Enabled Policy = "enabled"
)

// FieldEnabled is the field of every kind by which a person decides.
const FieldEnabled = "spec.runtimeConfigPersistence.enabled"

// Reasons of findings.
const (
	// ReasonStorageUnavailable says that no volume of a component is safe.
	ReasonStorageUnavailable = "RuntimeConfigStorageUnavailable"
	// ReasonStorageChanged says that the volume in use is not there any more.
	ReasonStorageChanged = "RuntimeConfigStorageChanged"
	// ReasonMigrationNeeded says that a component ran before without keeping its
	// settings, so that they have to be copied first.
	ReasonMigrationNeeded = "RuntimeConfigMigrationNeeded"
	// ReasonMigrationInvalid says that an approval of a migration is none, or one of another
	// cluster; ReasonMigrationOutdated that what it approves is not so any more.
	ReasonMigrationInvalid  = "RuntimeConfigMigrationInvalid"
	ReasonMigrationOutdated = "RuntimeConfigMigrationOutdated"
	// ReasonNoWayBack says that settings which are kept would be lost.
	ReasonNoWayBack = "RuntimeConfigCannotBeTurnedOff"
	// ReasonPathNotDurable says that the configuration names a directory of its own
	// that goes with the Pod.
	ReasonPathNotDurable = "RuntimeConfigPathNotDurable"
	// ReasonPolicyUnknown says that the recorded policy is none.
	ReasonPolicyUnknown = "RuntimeConfigPolicyUnknown"
	// ReasonPolicyDiffers says that the recorded policy keeps more than the copies of it
	// on the workloads, and that nobody asked for it.
	ReasonPolicyDiffers = "RuntimeConfigPolicyDiffers"
)

// Cluster is what the policy of a cluster is decided by.
type Cluster struct {
	// Recorded is the policy in the annotation of the resource, empty without one.
	Recorded string
	// Annotation is the name of it, for messages.
	Annotation string
	// Existed tells that the cluster has workloads, or is known to have had some.
	Existed bool
	// Keeps tells that some component keeps its settings.
	Keeps bool
	// Enabled is what the spec asks for, nil if it says nothing.
	Enabled *bool
	// Copies are the policies that the workloads have noted.
	Copies []Policy
}

// Ruling is the policy that counts.
type Ruling struct {
	Policy Policy
	// Record is the policy to be recorded; empty where the record stays as it is.
	Record   Policy
	Findings []plan.Finding
}

// Rule decides the policy. A record that is missing is made once; where workloads
// exist already it says legacy, since a missing record must never be taken for a new
// cluster.
func Rule(c Cluster) Ruling {
	was := Policy(c.Recorded)
	switch was {
	case "":
		return c.first()
	case Automatic, Legacy, Disabled, Enabled:
	default:
		return Ruling{Policy: Legacy, Findings: []plan.Finding{{
			Severity: plan.Warning, Field: fmt.Sprintf("metadata.annotations[%q]", c.Annotation), Reason: ReasonPolicyUnknown,
			Message: fmt.Sprintf("%q is no policy that this version knows, so nothing is changed by it: write automatic, legacy, disabled or enabled as it was before", c.Recorded),
		}}}
	}
	if c.Enabled == nil {
		return c.asRecorded(was)
	}
	if *c.Enabled {
		return moved(was, Enabled)
	}
	if c.Keeps {
		return Ruling{Policy: was, Findings: []plan.Finding{refusal(FieldEnabled, ReasonNoWayBack,
			"settings are kept already, and would silently go back to what the ConfigMaps say: set it to true, or leave it out")}}
	}
	if was == Legacy {
		return Ruling{Policy: Legacy} // the same for what exists, and for what comes
	}
	return moved(was, Disabled)
}

// asRecorded is the policy that is recorded. Where it keeps more than the copies of it
// on workloads say, somebody wrote it by hand: the copies count.
func (c Cluster) asRecorded(was Policy) Ruling {
	if was != Automatic && was != Enabled {
		return Ruling{Policy: was}
	}
	for _, kept := range c.Copies {
		if kept == Legacy || kept == Disabled {
			return Ruling{Policy: kept, Findings: []plan.Finding{{
				Severity: plan.Warning, Field: fmt.Sprintf("metadata.annotations[%q]", c.Annotation), Reason: ReasonPolicyDiffers,
				Message: fmt.Sprintf("it says %s, and the workloads were made under %s, which counts: write %s again, or set %s", was, kept, kept, FieldEnabled),
			}}}
		}
	}
	return Ruling{Policy: was}
}

// first is the policy of a cluster that has no record yet.
func (c Cluster) first() Ruling {
	switch {
	case c.Existed && c.Enabled != nil && !*c.Enabled && c.Keeps:
		c.Recorded = string(Legacy)
		ruling := Rule(c)
		ruling.Record = Legacy
		return ruling
	case c.Existed && (c.Enabled == nil || !*c.Enabled):
		return moved("", Legacy)
	case c.Enabled == nil:
		return moved("", Automatic)
	case *c.Enabled:
		return moved("", Enabled)
	}
	return moved("", Disabled)
}

func moved(was, now Policy) Ruling {
	if was == now {
		return Ruling{Policy: now}
	}
	return Ruling{Policy: now, Record: now}
}

func refusal(field, reason, message string) plan.Finding {
	return plan.Finding{Severity: plan.Refusal, Field: field, Reason: reason, Message: message}
}
