package v1

import (
	corev1 "k8s.io/api/core/v1"
)

// ExportService describes the Service that clients use.
type ExportService struct {
	// Type of the Service: ClusterIP, NodePort or LoadBalancer. Default:
	// ClusterIP.
	// +optional
	Type corev1.ServiceType `json:"type,omitempty"`

	// ServicePorts fix node ports.
	// +optional
	// +kubebuilder:validation:MaxItems=50
	ServicePorts []ServicePort `json:"servicePorts,omitempty"`

	// Annotations of the Service.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// LoadBalancerIP asks for an address of the load balancer. It counts only for
	// the type LoadBalancer, and only where the cloud provider supports it.
	// +optional
	LoadBalancerIP string `json:"loadBalancerIP,omitempty"`
}

// ServicePort fixes the node port of one port.
type ServicePort struct {
	// NodePort is the port on the nodes, usually between 30000 and 32767.
	// +optional
	NodePort int32 `json:"nodePort,omitempty"`

	// TargetPort is the port in the container whose node port is meant, for
	// example 9030.
	// +optional
	TargetPort int32 `json:"targetPort,omitempty"`
}

// FeAddress says where frontends are that are not part of this object.
type FeAddress struct {
	// ServiceName names a Service in the namespace of the cluster that leads to
	// the frontends. It counts when endpoints holds no address.
	// +optional
	ServiceName string `json:"ServiceName,omitempty"`

	// Endpoints are addresses of the frontends.
	// +optional
	Endpoints Endpoints `json:"endpoints,omitempty"`
}

// Endpoints are addresses of frontends.
type Endpoints struct {
	// Address lists host names or IP addresses of frontends.
	// +optional
	Address []string `json:"address,omitempty"`

	// LegacyAddress is what older versions of this API called address, by a slip
	// of the pen. It counts when address is empty. It is deprecated: write address.
	// +optional
	LegacyAddress []string `json:":address,omitempty"`

	// Port is the query port of the frontends. Default: 9030.
	// +optional
	Port int `json:"port,omitempty"`
}

// ConfigMapInfo names ConfigMaps that are mounted into Pods.
type ConfigMapInfo struct {
	// ConfigMapName names a ConfigMap that is mounted at /etc/doris. The images
	// link its files into the conf directory of the component.
	// +optional
	ConfigMapName string `json:"configMapName,omitempty"`

	// ResolveKey has no effect: the key is fe.conf, be.conf or
	// apache_hdfs_broker.conf. It is deprecated: leave it out.
	// +optional
	ResolveKey string `json:"resolveKey,omitempty"`

	// ConfigMaps are further ConfigMaps with the paths where they are mounted.
	// No two may have the same path.
	// +optional
	// +kubebuilder:validation:MaxItems=50
	ConfigMaps []MountConfigMapInfo `json:"configMaps,omitempty"`
}

// MountConfigMapInfo mounts one ConfigMap.
type MountConfigMapInfo struct {
	// ConfigMapName names the ConfigMap.
	// +optional
	ConfigMapName string `json:"configMapName,omitempty"`

	// MountPath is the directory in the container. Default: /etc/doris.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	MountPath string `json:"mountPath,omitempty"`
}

// Secret mounts one Secret.
type Secret struct {
	// SecretName names the Secret.
	// +optional
	SecretName string `json:"secretName,omitempty"`

	// MountPath is the directory in the container. Default: /etc/doris.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	MountPath string `json:"mountPath,omitempty"`
}

// PVCProvisioner says who makes the claims.
type PVCProvisioner string

// The provisioners. Empty counts as StatefulSet.
const (
	PVCProvisionerUnspecified PVCProvisioner = ""
	PVCProvisionerStatefulSet PVCProvisioner = "StatefulSet"
	PVCProvisionerOperator    PVCProvisioner = "Operator"
)

// PersistentVolume is one volume, with one claim for each Pod.
type PersistentVolume struct {
	// Name of the volume. The claim of a Pod is called <name>-<pod name>.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// MountPath is the directory in the container. An entry without one is a
	// template: it stands for the metadata directory of frontends (meta_dir) and
	// for every storage directory of backends (storage_root_path).
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	MountPath string `json:"mountPath,omitempty"`

	// PersistentVolumeClaimSpec is the claim that each Pod gets.
	// +optional
	PersistentVolumeClaimSpec corev1.PersistentVolumeClaimSpec `json:"persistentVolumeClaimSpec,omitempty"`

	// Annotations of the claims.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// Provisioner says who makes the claims: StatefulSet (default), or Operator,
	// which can also enlarge them. Once it is Operator it must stay so.
	// +optional
	Provisioner PVCProvisioner `json:"provisioner,omitempty"`
}

// Retention says what becomes of a claim that no Pod will use again.
// +kubebuilder:validation:Enum=Retain;Delete
type Retention string

// The retentions.
const (
	RetentionRetain Retention = "Retain"
	RetentionDelete Retention = "Delete"
)

// ClaimRetention says what becomes of the claims of Pods that are gone for good.
type ClaimRetention struct {
	// WhenScaledIn is about the claims of members that have left. Default: Retain.
	// +optional
	WhenScaledIn Retention `json:"whenScaledIn,omitempty"`

	// WhenRemoved is about the claims of a component that was removed, or whose
	// DorisCluster was deleted: with Delete, all data goes with it. Default: Retain.
	// +optional
	WhenRemoved Retention `json:"whenRemoved,omitempty"`
}

// SystemInitialization is a privileged init container.
type SystemInitialization struct {
	// InitImage is the image of the init container, and of the one that prepares
	// backends by default. Default: the image of the component.
	// +optional
	InitImage string `json:"initImage,omitempty"`

	// Command of the init container, not run in a shell.
	// +optional
	Command []string `json:"command,omitempty"`

	// Args of the command.
	// +optional
	Args []string `json:"args,omitempty"`

	// Requests, limits and claims of the init container.
	corev1.ResourceRequirements `json:",inline"`
}
