package meta

// Condition types. They mean the same for every kind.
const (
	// ConditionReady is the summary: everything that the spec asks for is there,
	// on the wanted revision, and healthy. A change that waits for consent does
	// not make it False.
	ConditionReady = "Ready"

	// ConditionReconciling is True while the operator is working towards the
	// spec, or waits for something that will come by itself.
	ConditionReconciling = "Reconciling"

	// ConditionStalled is True while the operator cannot go on unless a person
	// changes something.
	ConditionStalled = "Stalled"

	// ConditionAvailable is True while the data system serves its users, even if
	// some members are missing.
	ConditionAvailable = "Available"

	// ConditionChangePending is True while changes are held until someone
	// consents to them.
	ConditionChangePending = "ChangePending"

	// ConditionConfigurationInSync is False while a member runs with other
	// settings than the ones recorded for it.
	ConditionConfigurationInSync = "ConfigurationInSync"

	// ConditionPlaintextCredential is True while a credential stands in plain
	// text where others can read it: in a field of the spec or in a Pod template.
	ConditionPlaintextCredential = "PlaintextCredential" //nolint:gosec // the name of a condition

	// ConditionNodeUnreachable is True while Pods are on nodes that nobody hears
	// from.
	ConditionNodeUnreachable = "NodeUnreachable"

	// ConditionOtherOperatorsVisible is False while the operator may not see whether
	// another one is at work on the same kind.
	ConditionOtherOperatorsVisible = "OtherOperatorsVisible"

	// ConditionReleased is True while the workloads are handed back and the operator
	// does nothing.
	ConditionReleased = "Released"

	// ConditionFullySupported is False while the spec uses a field whose
	// behaviour this version does not have. The message names the fields.
	ConditionFullySupported = "FullySupported"
)

// Reasons of conditions and of plan steps that are the same for every kind.
const (
	// ReasonReconciled says that the world is as the spec wants it.
	ReasonReconciled = "Reconciled"

	// ReasonProgressing says that work is under way.
	ReasonProgressing = "Progressing"

	// ReasonPaused says that the object carries the annotation that stops the
	// operator from writing anything for it.
	ReasonPaused = "Paused"

	// ReasonInvalidSpec says that the spec asks for something that cannot be
	// built; nothing is changed until it is mended.
	ReasonInvalidSpec = "InvalidSpec"

	// ReasonUnsafeChange says that the spec asks for a change that would break
	// the data system or lose data.
	ReasonUnsafeChange = "UnsafeChange"

	// ReasonNotSupportedYet says that the spec uses a field whose behaviour is
	// not built yet.
	ReasonNotSupportedYet = "NotSupportedYet"

	// ReasonMissingReference says that an object named by the spec does not
	// exist, or lacks a key.
	ReasonMissingReference = "MissingReference"

	// ReasonInvalidConfiguration says that a configuration file named by the
	// spec holds a value that cannot be used.
	ReasonInvalidConfiguration = "InvalidConfiguration"

	// ReasonWaitingForComponent says that one component waits for another.
	ReasonWaitingForComponent = "WaitingForComponent"

	// ReasonMembersNotReady says that some members are not ready.
	ReasonMembersNotReady = "MembersNotReady"

	// ReasonNodeNotHeardFrom says that the node of a member is lost, or cut off.
	ReasonNodeNotHeardFrom = "NodeNotHeardFrom"

	// ReasonMemberFailed says that a member cannot run.
	ReasonMemberFailed = "MemberFailed"

	// ReasonDisruptionBudget says that a Pod is to go and that a PodDisruptionBudget, which
	// is named, does not let it.
	ReasonDisruptionBudget = "DisruptionBudget"

	// ReasonNotServing says that the data system does not answer its users.
	ReasonNotServing = "NotServing"

	// ReasonServing says that the data system answers its users.
	ReasonServing = "Serving"

	// ReasonReleasing says that the workloads are being handed back, or are.
	ReasonReleasing = "Releasing"

	// ReasonStaleApproval says that the consent given is for changes that are not
	// held.
	ReasonStaleApproval = "StaleApproval"

	// ReasonTakenOver says that a workload was made by another operator and is kept
	// as it was found.
	ReasonTakenOver = "TakenOver"

	// ReasonApproved says that a person consented to a change.
	ReasonApproved = "Approved"

	// ReasonConsentNeeded says that changes wait for consent.
	ReasonConsentNeeded = "ConsentNeeded"

	// ReasonNoChangePending says that no change waits for consent.
	ReasonNoChangePending = "NoChangePending"

	// ReasonMayNotLook says that the operator lacks the right to see something.
	ReasonMayNotLook = "MayNotLook"

	// ReasonOtherOperatorRunning says that another operator works on the same
	// objects, so that this one writes nothing.
	ReasonOtherOperatorRunning = "OtherOperatorRunning"

	// ReasonCannotReachSystem says that the data system could not be asked.
	ReasonCannotReachSystem = "CannotReachSystem"

	// ReasonAccessDenied says that the data system refused the credentials.
	ReasonAccessDenied = "AccessDenied"

	// ReasonCertificateNotAccepted says that a certificate of the data system, or that
	// of the operator, is not accepted by the other side.
	ReasonCertificateNotAccepted = "CertificateNotAccepted"

	// ReasonMetadataNotDumped says that the metadata of the database could not be written
	// into a file, which comes before frontends get another version.
	ReasonMetadataNotDumped = "MetadataNotDumped"

	// ReasonApplyFailed says that the API server refused or failed a write.
	ReasonApplyFailed = "ApplyFailed"

	// ReasonObserveFailed says that the world could not be read.
	ReasonObserveFailed = "ObserveFailed"

	// ReasonInternalError says that the operator itself failed on this object;
	// others are not touched by it.
	ReasonInternalError = "InternalError"

	// ReasonDeleting says that the object is being deleted.
	ReasonDeleting = "Deleting"

	// ReasonDeprecatedField says that the spec uses a field that should be
	// replaced by another one.
	ReasonDeprecatedField = "DeprecatedField"

	// ReasonDataNotPersistent says that data lives in a directory that is lost
	// with the Pod.
	ReasonDataNotPersistent = "DataNotPersistent"

	// ReasonUnstableIdentity says that members know each other by addresses that
	// change when a Pod is replaced.
	ReasonUnstableIdentity = "UnstableIdentity"

	// ReasonNoEffect says that the spec sets a field that does nothing here.
	ReasonNoEffect = "NoEffect"
)
