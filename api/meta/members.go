package meta

// AnnotationLeaving records, as JSON, a member that the operator takes out of the
// data system: on its Pod, and on the workload for all of them, since a Pod that is
// replaced forgets. It is written before the first statement, and only what it
// names is ever undone or finished by the operator.
const AnnotationLeaving = Prefix + "leaving"

// ConditionMembersRegistered is there, and False, while the members that the data
// system knows are not those whose Pods run, in a way that somebody has to look
// at, and while the operator may not ask.
const ConditionMembersRegistered = "MembersRegistered"

// Reasons of the condition, and of waits for members.
const (
	// ReasonMembersLeaving says that members are being taken out of the data system.
	ReasonMembersLeaving = "MembersLeaving"

	// ReasonMembersUnsafe says that members cannot leave as things are.
	ReasonMembersUnsafe = "MembersCannotLeave"

	// ReasonScaleInRefused says that the data system refused to let a member go.
	ReasonScaleInRefused = "ScaleInRefused"

	// ReasonNotRegistered says that a member serves nobody, since the data system
	// does not know it.
	ReasonNotRegistered = "NotRegistered"

	// ReasonMemberGone says that the data system knows a member whose Pod is gone.
	ReasonMemberGone = "MemberGone"
)

// AnnotationEndpoints on a workload records, as JSON, to which members the operator has
// given an address outside in the data system, or is about to, and what the data system
// refused of it. Only what it names is changed or taken back by the operator.
const AnnotationEndpoints = Prefix + "endpoints"

// ConditionEndpointsPublished is there, and False, while members shall be known by an
// address outside, and are not.
const ConditionEndpointsPublished = "EndpointsPublished"

// Reasons of the condition.
const (
	// ReasonWaitingForAddress says that a load balancer has no address yet.
	ReasonWaitingForAddress = "WaitingForAddress"

	// ReasonVersionTooOld says that the version of the data system has no such thing.
	ReasonVersionTooOld = "VersionTooOld"

	// ReasonEndpointRefused says that the data system refused the address.
	ReasonEndpointRefused = "EndpointRefused"

	// ReasonSetBySomebody says that somebody else has set another address, which stays.
	ReasonSetBySomebody = "SetBySomebody"
)
