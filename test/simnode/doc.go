// Package simnode is a test double of the kubelet and of a storage driver.
//
// It makes Node objects of great size and plays the part of their kubelets:
// Pods that the real scheduler binds to them become Running and Ready after a
// drawn delay, restart, are resized, and end when they are deleted. Claims of
// its storage class get volumes and grow. No container ever runs. Everything
// else (API server, scheduler, controllers) is the real thing, so what a test
// sees of StatefulSets, evictions or claims is Kubernetes itself.
//
// # Model
//
// The simulator keeps one machine per Pod. A machine is plain data with a pure
// step function: Pod spec, faults, content of ConfigMaps and Secrets and the
// time go in; changed state, events and the time of the next step come out.
// The status is rendered from the machine afterwards and written only when it
// differs from what was written before: one write per visible transition.
//
//	bound ──start delay──▶ mount ──▶ init containers ──▶ containers run ──ready delay──▶ Ready
//	                        │            │                    │  ▲
//	              missing ConfigMap   pull fails,       exit, image patched,
//	              or Secret: waits    config error,     restart asked: down,
//	              for it to appear    crash loop        restart delay, up again
//
//	deleted ──stop delay──▶ removed with grace period 0
//
// What a container would have read (files of ConfigMap, Secret, projected and
// downward API volumes, and its environment) is read from the API server at
// the moment that container starts, and remembered: see [Simulator.Process]
// and [Simulator.Mounted].
//
// Faults are asked for through [Simulator.Inject] or, from another process,
// by annotations on Pods, Nodes and claims: see [AnnotationFault].
//
// # What is not simulated
//
// Probes are not run and preStop hooks are not called; a running Pod's
// volumes do not follow later changes of a ConfigMap (a kubelet would bring
// them after about a minute); the kubelet's cheerful events (Pulled, Created,
// Started) are left out; node pressure, taints and heartbeats do not exist.
package simnode
