package plan

// EffectReloadOrRestart is that of a changed setting while nobody has asked the
// nodes whether it can be changed in the running process.
const EffectReloadOrRestart Effect = "reload, else restart-pod"

// EffectResizeOrRestart is that of other sizes of a container: its Pod is replaced only
// if its node, or the API server, does not resize it.
const EffectResizeOrRestart Effect = "resize, else restart-pod"

// NotDoneError is what an Operation ends with that was not carried out, or not
// wholly, for a reason that the system will see when it is observed again. It is
// no failure of the reconcile, and nothing is reported as done.
type NotDoneError struct {
	// Reason is said without any secret.
	Reason string
}

func (e *NotDoneError) Error() string { return e.Reason }
