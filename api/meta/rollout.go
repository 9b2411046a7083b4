package meta

import "strings"

// AnnotationRolling on a workload records, as JSON, what a roll has to know later of
// the members that went: when their processes had started, and what the operator
// has kept away from them. It is written before a member goes and is gone when the
// roll is over; only what it names is undone by the operator.
const AnnotationRolling = Prefix + "rolling"

// AnnotationBalanceStopped on the workload of the frontends lists, as JSON, the settings by which
// the operator stopped the balancing of tablets for an upgrade.
const AnnotationBalanceStopped = Prefix + "balance-stopped"

// AnnotationMetadataDump on the workload of the frontends records, as JSON, the file into
// which the metadata was written last before frontends got another version.
const AnnotationMetadataDump = Prefix + "metadata-dump"

// AnnotationAllow on a custom resource lists, with commas, what the operator does
// not do by itself and a person wants all the same. It holds as long as it is there.
const AnnotationAllow = Prefix + "allow"

// AllowRollWithoutDatabase in AnnotationAllow lets a roll go on by the readiness of
// Pods alone, whatever the data system says, or while it says nothing.
const AllowRollWithoutDatabase = "roll-without-database"

// AllowDowngrade in AnnotationAllow lets an image of an earlier minor version follow a later one.
const AllowDowngrade = "downgrade"

// AllowVersionSkip in AnnotationAllow lets an upgrade leave minor versions out.
const AllowVersionSkip = "version-skip"

// Allowed tells whether a person wants something that is not done without a word.
func Allowed(annotations map[string]string, what string) bool {
	for word := range strings.SplitSeq(annotations[AnnotationAllow], ",") {
		if strings.TrimSpace(word) == what {
			return true
		}
	}
	return false
}

// AnnotationHistory on a workload lists, as JSON, what was rolled of it: an entry
// begins and ends in the same write as the roll. The status of the custom resource
// repeats it.
const AnnotationHistory = Prefix + "history"
