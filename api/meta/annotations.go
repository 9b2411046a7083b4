package meta

import "strconv"

// Prefix is the domain of all annotations, labels and field managers that
// belong to the operator itself.
const Prefix = "fairlead.dev/"

// Annotations read from objects that users write.
const (
	// AnnotationPaused on a custom resource stops all writes for it unless its
	// value is "false". Status is still reported.
	AnnotationPaused = Prefix + "paused"

	// AnnotationApprove on a custom resource consents to the set of held changes
	// with this digest. It is consumed by the first write.
	AnnotationApprove = Prefix + "approve"

	// AnnotationRelease with the value "true" on a custom resource hands its
	// workloads back: the operator gives up what it owns and does nothing more
	// until the annotation is gone.
	AnnotationRelease = Prefix + "release"

	// AnnotationDeletionProtection on a custom resource or claim, with any value but
	// "false", has the API server refuse to delete it. The policy of config/admission
	// reads it; the operator does not.
	AnnotationDeletionProtection = Prefix + "deletion-protection"

	// AnnotationFoundNewCluster with the value "true" on the Pod of the first
	// member lets it found a new, empty cluster although this one has been up
	// before. It goes away with the Pod.
	AnnotationFoundNewCluster = Prefix + "found-new-cluster"

	// AnnotationLostSettingsKnown on a custom resource is a time, as RFC 3339 has it: of
	// settings that nodes were seen to have lost until then somebody knows.
	AnnotationLostSettingsKnown = Prefix + "lost-settings-known"
)

// Annotations written by the operator.
const (
	// AnnotationRevision records which version of the operator's own rendering a
	// workload uses. A newer operator keeps rendering that one until someone
	// consents to a newer one.
	AnnotationRevision = Prefix + "revision"

	// AnnotationAccepted on a workload records, as JSON, what its Pod template was
	// last rendered from: the part of the spec and the settings that were read from
	// ConfigMaps. Rendered again at the recorded revision it gives the template that
	// was applied, so that edits of the resource, edits by somebody else and a newer
	// rendering are told apart field by field.
	AnnotationAccepted = Prefix + "accepted"

	// AnnotationLastGood on a workload records, as JSON, what its Pods ran on before
	// the roll that is under way: what the template goes back to when that stops.
	AnnotationLastGood = Prefix + "last-good"

	// AnnotationFailed on a workload records, as JSON, the change at which a roll
	// stopped and that was taken back. It is not tried again before something of it
	// is different, or a person consents.
	AnnotationFailed = Prefix + "failed"

	// AnnotationTemplate in a Pod template is a digest of the template as it was
	// rendered. A Pod with another one is to be replaced. A workload that was taken
	// over has none until its template is first changed.
	AnnotationTemplate = Prefix + "template"

	// AnnotationConsents on a workload counts the consents that were carried out on
	// it, so that none counts twice.
	AnnotationConsents = Prefix + "consents"

	// AnnotationAgreedReplicas on a workload is the number of Pods that somebody else
	// scaled it to and that the spec asked for after that: from then on the spec decides.
	AnnotationAgreedReplicas = Prefix + "agreed-replicas"

	// AnnotationRoll on a workload that was taken over names the revision of its
	// template to which a person let the remaining Pods be brought.
	AnnotationRoll = Prefix + "roll"

	// AnnotationAsFound on an object that was taken over lists, as JSON, the fields
	// that differed from what is rendered. They stay as they were found.
	AnnotationAsFound = Prefix + "as-found"

	// AnnotationInputs on an object that is rendered records digests of what it
	// was rendered from, so that an edit of the custom resource, one of a
	// ConfigMap and one by somebody else can be told apart.
	AnnotationInputs = Prefix + "inputs"

	// AnnotationMigrationAccepted on a custom resource is the id of the migration of
	// settings whose approval was found to be right: from then on it is carried to its
	// end, whatever becomes of the workloads meanwhile.
	AnnotationMigrationAccepted = Prefix + "migration-accepted"
)

// Paused tells whether the annotations ask the operator to write nothing. Any
// value but a spelling of false does: whoever writes "yes" means it.
func Paused(annotations map[string]string) bool {
	value, set := annotations[AnnotationPaused]
	paused, err := strconv.ParseBool(value)
	return set && (paused || err != nil)
}

// Released tells whether the annotations ask the operator to hand the workloads
// back. Unlike a pause it changes something, so only a spelling of true counts.
func Released(annotations map[string]string) bool {
	released, err := strconv.ParseBool(annotations[AnnotationRelease])
	return err == nil && released
}

// AnnotationOthersReplicas on a workload is the number of Pods that somebody else set and
// that the spec never asked for. It is kept, and a later write of the operator's, which
// names the number that there is, does not make it the operator's own.
const AnnotationOthersReplicas = Prefix + "others-replicas"
