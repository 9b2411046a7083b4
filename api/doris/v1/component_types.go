package v1

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
)

// FeSpec describes the frontends.
type FeSpec struct {
	// ElectionNumber is how many frontends elect the master and hold its log:
	// the FOLLOWERs, which are the Pods with the lowest ordinals. All others are
	// OBSERVERs. It should be odd. Default: 3.
	// +optional
	ElectionNumber *int32 `json:"electionNumber,omitempty"`

	BaseSpec `json:",inline"`
}

// BeSpec describes the backends.
type BeSpec struct {
	// EnableWorkloadGroup lets Doris limit the CPU of workload groups through
	// cgroups. The main container becomes privileged. Default: false.
	// +optional
	EnableWorkloadGroup bool `json:"enableWorkloadGroup,omitempty"`

	// SkipDefaultSystemInit leaves out the privileged init container that raises
	// vm.max_map_count and turns swap off on the node, and tells Doris not to
	// check these limits (Doris 2.1.8, 3.0.4 and newer). Default: false.
	// +optional
	SkipDefaultSystemInit bool `json:"skipDefaultSystemInit,omitempty"`

	// EnableFeAffinity prefers nodes that run a frontend of this cluster; without
	// it such nodes are avoided if possible. Default: false.
	// +optional
	EnableFeAffinity bool `json:"enableFeAffinity,omitempty"`

	// AutoResolveLimitCPU tells the container its CPU limit in the environment
	// variable BE_CPU_LIMIT. Default: false.
	// +optional
	AutoResolveLimitCPU bool `json:"autoResolveLimitCPU,omitempty"`

	// ScaleInPolicy says how members leave when there shall be fewer: Decommission
	// moves their tablets to the others first; Drop takes them out at once, with
	// what they hold, once a person consents. Compute nodes hold nothing and are
	// always taken out at once. Default: Decommission.
	// +kubebuilder:validation:Enum=Decommission;Drop
	// +optional
	ScaleInPolicy ScaleInPolicy `json:"scaleInPolicy,omitempty"`

	// StreamLoadEndpoint says where a frontend sends a stream load on: Backend leaves
	// it at what the database knows, which is addresses inside the cluster;
	// LoadBalancer has the operator tell the database, as public_endpoint of each
	// member, the address of the Service of type LoadBalancer as well, for loads
	// that ask for it. Doris 3.1 and newer. Default: Backend.
	// +kubebuilder:validation:Enum=Backend;LoadBalancer
	// +optional
	StreamLoadEndpoint StreamLoadEndpoint `json:"streamLoadEndpoint,omitempty"`

	BaseSpec `json:",inline"`
}

// CnSpec describes the compute nodes.
type CnSpec struct {
	// SkipDefaultSystemInit leaves out the privileged init container that raises
	// vm.max_map_count and turns swap off on the node. Default: false.
	// +optional
	SkipDefaultSystemInit bool `json:"skipDefaultSystemInit,omitempty"`

	// AutoResolveLimitCPU tells the container its CPU limit in the environment
	// variable BE_CPU_LIMIT. Default: false.
	// +optional
	AutoResolveLimitCPU bool `json:"autoResolveLimitCPU,omitempty"`

	// AutoScalingPolicy lets Kubernetes choose the number of compute nodes. The
	// autoscaler writes it into replicas, through the scale subresource of this
	// object: leave replicas out of a manifest that is applied again and again.
	// +optional
	AutoScalingPolicy *AutoScalingPolicy `json:"autoScalingPolicy,omitempty"`

	// ScaleInPolicy says how members leave when there shall be fewer: Decommission
	// moves their tablets to the others first; Drop takes them out at once, with
	// what they hold, once a person consents. Compute nodes hold nothing and are
	// always taken out at once. Default: Decommission.
	// +kubebuilder:validation:Enum=Decommission;Drop
	// +optional
	ScaleInPolicy ScaleInPolicy `json:"scaleInPolicy,omitempty"`

	// StreamLoadEndpoint says where a frontend sends a stream load on: Backend leaves
	// it at what the database knows, which is addresses inside the cluster;
	// LoadBalancer has the operator tell the database, as public_endpoint of each
	// member, the address of the Service of type LoadBalancer as well, for loads
	// that ask for it. Doris 3.1 and newer. Default: Backend.
	// +kubebuilder:validation:Enum=Backend;LoadBalancer
	// +optional
	StreamLoadEndpoint StreamLoadEndpoint `json:"streamLoadEndpoint,omitempty"`

	BaseSpec `json:",inline"`
}

// BrokerSpec describes the brokers.
type BrokerSpec struct {
	// KickOffAffinityBe prefers nodes that run a backend of this cluster.
	// Default: false.
	// +optional
	KickOffAffinityBe bool `json:"kickOffAffinityBe,omitempty"`

	BaseSpec `json:",inline"`
}

// AutoScalerVersion is the version of the HorizontalPodAutoscaler API.
type AutoScalerVersion string

// The autoscaler versions.
const (
	AutoScalerV1 AutoScalerVersion = "v1"
	AutoScalerV2 AutoScalerVersion = "v2"
)

// AutoScalingPolicy is a HorizontalPodAutoscaler in short.
type AutoScalingPolicy struct {
	// Version of the HorizontalPodAutoscaler: v1 or v2.
	// +kubebuilder:default=v2
	// +optional
	Version AutoScalerVersion `json:"version,omitempty"`

	// MinReplicas is the lowest number of Pods. Default: 1.
	// +optional
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// MaxReplicas is the highest number of Pods.
	MaxReplicas int32 `json:"maxReplicas"`

	// HPAPolicy holds the metrics and the behaviour of version v2.
	// +optional
	HPAPolicy *HPAPolicy `json:"hpaPolicy,omitempty"`
}

// HPAPolicy holds what a HorizontalPodAutoscaler of version v2 decides by.
type HPAPolicy struct {
	// Metrics from which the number of Pods is computed; the highest result
	// counts.
	// +optional
	Metrics []autoscalingv2.MetricSpec `json:"metrics,omitempty"`

	// Behavior limits how fast Pods are added and removed.
	// +optional
	Behavior *autoscalingv2.HorizontalPodAutoscalerBehavior `json:"behavior,omitempty"`
}

// BaseSpec holds what all components have in common.
type BaseSpec struct {
	// Annotations of the Pods.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// PodLabels are added to the labels of the Pods. They cannot replace the
	// labels by which the operator selects Pods.
	// +optional
	PodLabels map[string]string `json:"podLabels,omitempty"`

	// ServiceAccount is the ServiceAccount of the Pods.
	// +optional
	ServiceAccount string `json:"serviceAccount,omitempty"`

	// Service describes the Service that clients use. Default: ClusterIP.
	// +optional
	Service *ExportService `json:"service,omitempty"`

	// FeAddress says where the frontends are when they are not part of this
	// object.
	// +optional
	FeAddress *FeAddress `json:"feAddress,omitempty"`

	// Replicas is the number of Pods. Default: 3 frontends, 3 backends, 1 of
	// everything else.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// Image of the main container.
	Image string `json:"image"`

	// ImagePullSecrets name the Secrets with which images are pulled.
	// +optional
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// ConfigMapInfo names ConfigMaps that are mounted into the Pods; one of them
	// may hold the configuration file of the component.
	// +optional
	ConfigMapInfo ConfigMapInfo `json:"configMapInfo,omitempty"`

	// Requests, limits and claims of the main container.
	corev1.ResourceRequirements `json:",inline"`

	// StartTimeout is how many seconds a container may take to start before it
	// is restarted. Values below 360 count as 360.
	// +optional
	StartTimeout int32 `json:"startTimeout,omitempty"`

	// LiveTimeout is the timeout of the liveness probe in seconds. Default: 180.
	// +optional
	LiveTimeout int32 `json:"liveTimeout,omitempty"`

	// ReadinessProbePolicy sets the timing of the readiness probe.
	// +optional
	ReadinessProbePolicy *ReadinessProbePolicy `json:"readinessProbePolicy,omitempty"`

	// NodeSelector restricts the nodes on which Pods may run, by label.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// EnvVars are environment variables of the main container. They win over
	// variables of the same name that the operator would set.
	// +optional
	EnvVars []corev1.EnvVar `json:"envVars,omitempty"`

	// Affinity holds scheduling rules. They are added to those of the operator,
	// which prefers to spread the Pods of a component over nodes.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// Tolerations of the Pods.
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// HostAliases are entries added to /etc/hosts of the Pods.
	// +optional
	HostAliases []corev1.HostAlias `json:"hostAliases,omitempty"`

	// PersistentVolumes are volumes that outlive a Pod: one claim per Pod and
	// entry. Without an entry for its data directory a component keeps its data
	// in a directory that is lost with the Pod.
	// +optional
	// +kubebuilder:validation:MaxItems=50
	PersistentVolumes []PersistentVolume `json:"persistentVolumes,omitempty"`

	// ClaimRetention says what becomes of claims that no Pod will use again. They
	// are kept unless it says otherwise.
	// +optional
	ClaimRetention *ClaimRetention `json:"claimRetention,omitempty"`

	// SystemInitialization adds a privileged init container that prepares the
	// node.
	// +optional
	SystemInitialization *SystemInitialization `json:"systemInitialization,omitempty"`

	// SecurityContext of the Pods.
	// +optional
	SecurityContext *corev1.PodSecurityContext `json:"securityContext,omitempty"`

	// ContainerSecurityContext is the security context of the main container.
	// +optional
	ContainerSecurityContext *corev1.SecurityContext `json:"containerSecurityContext,omitempty"`

	// Secrets are mounted into the Pods.
	// +optional
	// +kubebuilder:validation:MaxItems=50
	Secrets []Secret `json:"secrets,omitempty"`
}

// ReadinessProbePolicy sets the timing of the readiness probe. Values that are
// missing or 0 count as the default.
type ReadinessProbePolicy struct {
	// TimeoutSeconds is how long one check may take. Default: 1.
	// +optional
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`

	// FailureThreshold is after how many failed checks in a row a Pod is taken
	// out of its Services. Default: 3.
	// +optional
	FailureThreshold int32 `json:"failureThreshold,omitempty"`

	// PeriodSeconds is the time between two checks. Default: 5.
	// +optional
	PeriodSeconds int32 `json:"periodSeconds,omitempty"`
}
