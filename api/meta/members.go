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
