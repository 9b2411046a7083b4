// Package sim is a simulated world for planners: a test double of what a
// planner sees of a Kubernetes cluster, deterministic and in memory.
//
// It is not a fake client. A Store keeps typed objects with resource versions
// and uids and merges applies with the API machinery's own field manager, so
// that ownership of fields is real and not imitated. On it work stand-ins for
// the StatefulSet controller, the garbage collector and the kubelet (Advance).
// A Runner runs the real kernel with a real planner over the Store, and makes
// it suffer: an incarnation of the operator dies between two steps, reads are
// stale, calls fail before or after they took effect. After each write it holds
// that nothing was changed that the plan did not announce.
//
// What is not simulated: admission, validation beyond a few immutable fields,
// most defaults, and time.
package sim
