package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DorisClusterStatus is what the operator last saw.
type DorisClusterStatus struct {
	// ObservedGeneration is the generation of the spec that this status was
	// computed from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions sum the cluster up. Ready is the one to wait for; Reconciling
	// and Stalled tell whether waiting helps.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Workloads records what each StatefulSet is rendered by, so that one that is
	// deleted comes back as it was.
	// +listType=map
	// +listMapKey=name
	// +optional
	Workloads []WorkloadStatus `json:"workloads,omitempty"`

	// Roll says which components have Pods that are to be replaced or resized still, and
	// how many are as they shall be, such as "be 1/3". It is empty when there are none.
	// +optional
	Roll string `json:"roll,omitempty"`

	// History lists what was rolled, the newest first: at most 20 changes of Pod
	// templates, with why, for whom, and how they ended.
	// +listType=atomic
	// +optional
	History []RollRecord `json:"history,omitempty"`

	// RuntimeConfig tells which components keep settings that are changed while
	// they run. It is not there where none was asked to.
	// +optional
	RuntimeConfig *RuntimeConfigStatus `json:"runtimeConfig,omitempty"`

	// FeStatus is the state of the frontends.
	// +optional
	FeStatus *ComponentStatus `json:"feStatus,omitempty"`

	// BeStatus is the state of the backends.
	// +optional
	BeStatus *ComponentStatus `json:"beStatus,omitempty"`

	// CnStatus is the state of the compute nodes.
	// +optional
	CnStatus *CnStatus `json:"cnStatus,omitempty"`

	// BrokerStatus is the state of the brokers.
	// +optional
	BrokerStatus *ComponentStatus `json:"brokerStatus,omitempty"`
}

// RuntimeConfigStatus tells how settings that are changed at run time are kept.
type RuntimeConfigStatus struct {
	// Policy is the one that is recorded for the cluster: automatic, legacy,
	// disabled or enabled.
	// +optional
	Policy string `json:"policy,omitempty"`

	// Kept are the components whose settings outlive their Pods.
	// +listType=set
	// +optional
	Kept []ComponentType `json:"kept,omitempty"`

	// NotKept are the components that had no volume which is safe for them when
	// they were made.
	// +listType=set
	// +optional
	NotKept []ComponentType `json:"notKept,omitempty"`

	// ChangedSettings counts the settings that were changed in running nodes; the
	// ConfigMap <name>-observed names them.
	// +optional
	ChangedSettings int32 `json:"changedSettings,omitempty"`

	// ChangedNodes counts the nodes that they were changed in.
	// +optional
	ChangedNodes int32 `json:"changedNodes,omitempty"`

	// ContradictedSettings counts those of the changed settings that a ConfigMap
	// names with another value. What was changed wins.
	// +optional
	ContradictedSettings int32 `json:"contradictedSettings,omitempty"`
}

// CnStatus is the state of the compute nodes.
type CnStatus struct {
	ComponentStatus `json:",inline"`

	// HorizontalScaler is the autoscaler of the compute nodes.
	// +optional
	HorizontalScaler *HorizontalScaler `json:"horizontalScaler,omitempty"`

	// Replicas is how many Pods of compute nodes there are. It is what the scale
	// subresource reports.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// Selector finds the Pods of the compute nodes by their labels. An autoscaler
	// reads it from the scale subresource.
	// +optional
	Selector string `json:"selector,omitempty"`
}

// HorizontalScaler names an autoscaler.
type HorizontalScaler struct {
	// Name of the HorizontalPodAutoscaler.
	// +optional
	Name string `json:"name,omitempty"`

	// Version of the HorizontalPodAutoscaler.
	// +optional
	Version AutoScalerVersion `json:"version,omitempty"`
}

// ComponentStatus is the state of one component.
type ComponentStatus struct {
	// AccessService is the name of the Service that clients use.
	// +optional
	AccessService string `json:"accessService,omitempty"`

	// CoreConfigMapHashValue is the hash of the settings in the configuration
	// file of the component.
	// +optional
	CoreConfigMapHashValue string `json:"coreConfigMapHashValue,omitempty"`

	// FailedInstances are the Pods that cannot run.
	// +optional
	FailedInstances []string `json:"failedInstances,omitempty"`

	// CreatingInstances are the Pods that are on their way.
	// +optional
	CreatingInstances []string `json:"creatingInstances,omitempty"`

	// RunningInstances are the Pods that are ready.
	// +optional
	RunningInstances []string `json:"runningInstances,omitempty"`

	// LeavingInstances are the members that are being taken out of the database
	// because there shall be fewer.
	// +listType=map
	// +listMapKey=name
	// +optional
	LeavingInstances []LeavingInstance `json:"leavingInstances,omitempty"`

	// RegisteredInstances are the Pods that the database has known as members. One
	// that it does not know any more is not made a member again by the operator.
	// +listType=set
	// +optional
	RegisteredInstances []string `json:"registeredInstances,omitempty"`

	// Rollout is how far the replacement of the Pods is; not there while none is to
	// be replaced.
	// +optional
	Rollout *RolloutProgress `json:"rollout,omitempty"`

	// FollowerInstances are the Pods of the frontends that elect the master.
	// +listType=set
	// +optional
	FollowerInstances []string `json:"followerInstances,omitempty"`

	// MasterInstance is the Pod of the frontend that was the master when the database
	// was last asked.
	// +optional
	MasterInstance string `json:"masterInstance,omitempty"`

	// ComponentCondition says in one word how the component is.
	ComponentCondition ComponentCondition `json:"componentCondition"`
}

// RolloutProgress is how far the replacement of Pods is.
type RolloutProgress struct {
	// Updated is how many Pods need not be replaced (any more).
	Updated int32 `json:"updated"`

	// Total is how many Pods there shall be.
	Total int32 `json:"total"`
}

// LeavingInstance is a member that leaves.
type LeavingInstance struct {
	// Name of the Pod.
	Name string `json:"name"`

	// Since when it has been leaving.
	Since metav1.Time `json:"since"`

	// Tablets that it still holds; not there while that is not known.
	// +optional
	Tablets *int64 `json:"tablets,omitempty"`

	// LastMoved is when it was last seen to hold fewer tablets than before, or when
	// it was first asked how many it holds.
	// +optional
	LastMoved *metav1.Time `json:"lastMoved,omitempty"`
}

// ScaleInPolicy says how members leave.
type ScaleInPolicy string

// The policies.
const (
	ScaleInDecommission ScaleInPolicy = "Decommission"
	ScaleInDrop         ScaleInPolicy = "Drop"
)

// StreamLoadEndpoint says by which addresses backends get stream loads.
type StreamLoadEndpoint string

// The endpoints.
const (
	EndpointBackend      StreamLoadEndpoint = "Backend"
	EndpointLoadBalancer StreamLoadEndpoint = "LoadBalancer"
)

// ComponentCondition says in one word how a component is.
type ComponentCondition struct {
	// SubResourceName is the name of the StatefulSet.
	// +optional
	SubResourceName string `json:"subResourceName,omitempty"`

	// Phase is one of initializing, reconciling, available, haveMemberFailed,
	// restarting, scaling, upgrading, waitScheduling.
	Phase ComponentPhase `json:"phase"`

	// LastTransitionTime is when the phase last changed.
	LastTransitionTime metav1.Time `json:"lastTransitionTime"`

	// Reason of the phase in one word, or empty.
	Reason string `json:"reason"`

	// Message for people, or empty.
	Message string `json:"message"`
}

// ComponentPhase says in one word how a component is.
type ComponentPhase string

// The phases.
const (
	PhaseInitializing     ComponentPhase = "initializing"
	PhaseReconciling      ComponentPhase = "reconciling"
	PhaseAvailable        ComponentPhase = "available"
	PhaseHaveMemberFailed ComponentPhase = "haveMemberFailed"
	PhaseRestarting       ComponentPhase = "restarting"
	PhaseScaling          ComponentPhase = "scaling"
	PhaseUpgrading        ComponentPhase = "upgrading"
	PhaseWaitScheduling   ComponentPhase = "waitScheduling"
)

// WorkloadStatus is what is recorded of one StatefulSet.
type WorkloadStatus struct {
	// Name of the StatefulSet.
	Name string `json:"name"`

	// Revision is the version of the operator's rendering that it uses. 0 is that
	// of the operator that the cluster was taken over from.
	Revision int32 `json:"revision"`

	// Content names the copy of each ConfigMap that its Pods have.
	// +optional
	Content map[string]string `json:"content,omitempty"`

	// Records is what the operator remembers of it, by the names of the annotations
	// that the StatefulSet has it in. One that is deleted comes back by it.
	// +optional
	Records map[string]string `json:"records,omitempty"`
}

// RollOutcome says how a roll stands.
type RollOutcome string

// The outcomes. A roll that was overtaken is one that another change of the same
// component followed before it was over.
const (
	RollUnderWay   RollOutcome = "Rolling"
	RollDone       RollOutcome = "Done"
	RollStopped    RollOutcome = "Stopped"
	RollRolledBack RollOutcome = "RolledBack"
	RollOvertaken  RollOutcome = "Overtaken"
)

// RollRecord is one change of the Pods of a component.
type RollRecord struct {
	// Component is fe, be, cn or broker.
	Component ComponentType `json:"component"`

	// Began is when the Pod template was changed.
	Began metav1.Time `json:"began"`

	// Ended is when every Pod was ready on it, or when the roll stopped.
	// +optional
	Ended *metav1.Time `json:"ended,omitempty"`

	// Outcome is one of Rolling, Done, Stopped, RolledBack, Overtaken.
	Outcome RollOutcome `json:"outcome"`

	// Cause is who brought the change about: user (the resource), config (a ConfigMap
	// or Secret that it names), revision (the operator's own rendering) or drift (an
	// edit of the StatefulSet).
	// +optional
	Cause string `json:"cause,omitempty"`

	// Effect is what was to be done to Pods: restart-pod, "resize, else restart-pod",
	// or data-loss.
	// +optional
	Effect string `json:"effect,omitempty"`

	// By are the field managers that wrote what changed, and those that approved it, as
	// far as the API server tells: names of programs, such as kubectl-edit.
	// +listType=atomic
	// +optional
	By []string `json:"by,omitempty"`

	// Changes are what was different, in words; of the fields of the resource only
	// images and sizes with their values.
	// +listType=atomic
	// +optional
	Changes []string `json:"changes,omitempty"`

	// Pods is how many the component had when the roll ended.
	// +optional
	Pods int32 `json:"pods,omitempty"`

	// Message says why a roll stopped.
	// +optional
	Message string `json:"message,omitempty"`
}
