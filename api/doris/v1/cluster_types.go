package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DorisCluster is an Apache Doris cluster: frontends that hold the metadata and
// plan queries, backends that hold the data and run them, and optionally compute
// nodes and brokers.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.cnSpec.replicas,statuspath=.status.cnStatus.replicas,selectorpath=.status.cnStatus.selector
// +kubebuilder:resource:path=dorisclusters,singular=doriscluster,shortName=dcr,scope=Namespaced
// +kubebuilder:printcolumn:name="FeStatus",type=string,JSONPath=`.status.feStatus.componentCondition.phase`
// +kubebuilder:printcolumn:name="BeStatus",type=string,JSONPath=`.status.beStatus.componentCondition.phase`
// +kubebuilder:printcolumn:name="CnStatus",type=string,JSONPath=`.status.cnStatus.componentCondition.phase`
// +kubebuilder:printcolumn:name="BrokerStatus",type=string,JSONPath=`.status.brokerStatus.componentCondition.phase`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Roll",type=string,JSONPath=`.status.roll`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type DorisCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the cluster that is wanted.
	// +optional
	Spec DorisClusterSpec `json:"spec,omitempty"`

	// Status is what the operator last saw. It is written by the operator only.
	// +optional
	Status DorisClusterStatus `json:"status,omitempty"`
}

// DorisClusterList is a list of DorisClusters.
//
// +kubebuilder:object:root=true
type DorisClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the clusters.
	Items []DorisCluster `json:"items"`
}

// DorisClusterSpec says what the cluster is made of.
type DorisClusterSpec struct {
	// FeSpec describes the frontends. Leave it out when the frontends run
	// elsewhere, and say where in the feAddress of the other components.
	// +optional
	FeSpec *FeSpec `json:"feSpec,omitempty"`

	// BeSpec describes the backends, which store data and run queries.
	// +optional
	BeSpec *BeSpec `json:"beSpec,omitempty"`

	// CnSpec describes compute nodes: backends that run queries over external
	// tables and store no data. Their be.conf has to hold
	// "be_node_role=computation".
	// +optional
	CnSpec *CnSpec `json:"cnSpec,omitempty"`

	// BrokerSpec describes brokers, processes that read external storage such as
	// HDFS for load jobs.
	// +optional
	BrokerSpec *BrokerSpec `json:"brokerSpec,omitempty"`

	// AdminUser is the account that registers and drops members.
	// It is deprecated, because its password stands in plain text in this object:
	// use authSecret, which wins when both are set.
	// +optional
	AdminUser *AdminUser `json:"adminUser,omitempty"`

	// AuthSecret names a Secret of type kubernetes.io/basic-auth in the
	// namespace of the cluster, with the account that registers and drops
	// members: key "username" (default root) and key "password". It is mounted
	// as files into the Pods.
	// +optional
	AuthSecret string `json:"authSecret,omitempty"`

	// EnableRestartWhenConfigChange restarts frontends and backends one by one
	// when fe.conf or be.conf in their ConfigMap changes. Default: false.
	// +optional
	EnableRestartWhenConfigChange bool `json:"enableRestartWhenConfigChange,omitempty"`

	// KerberosInfo gives all components access to storage that is protected by
	// Kerberos.
	// +optional
	KerberosInfo *KerberosInfo `json:"kerberosInfo,omitempty"`

	// SharedPersistentVolumeClaims are existing claims that are mounted into all
	// Pods of the named components. They must allow ReadWriteMany.
	// +optional
	SharedPersistentVolumeClaims []SharedPersistentVolumeClaim `json:"sharedPersistentVolumeClaims,omitempty"`

	// RuntimeConfigPersistence says whether settings that are changed in a
	// running frontend or backend outlive the Pod. Left out: the policy recorded
	// for the cluster decides.
	// +optional
	RuntimeConfigPersistence *RuntimeConfigPersistence `json:"runtimeConfigPersistence,omitempty"`

	// ConfigUpdatePolicy says what happens when a ConfigMap with fe.conf or
	// be.conf changes. Manual: the change is held until a person accepts it.
	// Restart: Pods are replaced one by one. Auto: what can be changed in the
	// running processes is, and only the rest replaces Pods. Left out:
	// enableRestartWhenConfigChange decides between Restart and Manual.
	// +kubebuilder:validation:Enum=Manual;Restart;Auto
	// +optional
	ConfigUpdatePolicy ConfigUpdatePolicy `json:"configUpdatePolicy,omitempty"`

	// Rollout says how a change of Pod templates is carried out.
	// +optional
	Rollout *Rollout `json:"rollout,omitempty"`
}

// Rollout says how Pods are replaced when their template changes.
type Rollout struct {
	// OnFailure says what happens when a Pod does not come up on a changed
	// template. Pause: the template is put back, and the Pod stays to be looked
	// at. Rollback: the Pods that have the change already are replaced as well.
	// What failed is not tried again before the spec changes. Default: Pause.
	// +kubebuilder:validation:Enum=Pause;Rollback
	// +optional
	OnFailure OnFailure `json:"onFailure,omitempty"`

	// MetadataDump says whether the master writes all metadata of the database into a
	// file on its volume before the first frontend gets another version, as Doris
	// advises. While it writes, changes of metadata wait. BeforeUpgrade: it does, and
	// no frontend is replaced before. Never: nobody asks for it. Default: BeforeUpgrade.
	// +kubebuilder:validation:Enum=BeforeUpgrade;Never
	// +optional
	MetadataDump MetadataDump `json:"metadataDump,omitempty"`

	// ProgressDeadlineSeconds is how long a replaced Pod may take to become ready,
	// from when its node takes it or nobody has room for it, before it counts as one
	// that does not come up. Default: 600, or twice the startTimeout of the component
	// where that is longer.
	// +kubebuilder:validation:Minimum=10
	// +optional
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`
}

// OnFailure says what becomes of a roll that stops.
type OnFailure string

// What becomes of a roll that stops.
const (
	OnFailurePause    OnFailure = "Pause"
	OnFailureRollback OnFailure = "Rollback"
)

// MetadataDump says when the metadata of the database is written into a file.
type MetadataDump string

// When the metadata of the database is written into a file.
const (
	MetadataDumpBeforeUpgrade MetadataDump = "BeforeUpgrade"
	MetadataDumpNever         MetadataDump = "Never"
)

// ConfigUpdatePolicy says what a changed configuration file leads to.
type ConfigUpdatePolicy string

// The configuration update policies.
const (
	ConfigUpdateManual  ConfigUpdatePolicy = "Manual"
	ConfigUpdateRestart ConfigUpdatePolicy = "Restart"
	ConfigUpdateAuto    ConfigUpdatePolicy = "Auto"
)

// AdminUser is an account in plain text.
type AdminUser struct {
	// Name of the account. Doris has a built-in account "admin", which cannot
	// register members: choose another name.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Name string `json:"name,omitempty"`

	// Password of the account, readable by everyone who can read this object.
	// +optional
	Password string `json:"password,omitempty"`
}

// KerberosInfo names what a Kerberos client needs.
type KerberosInfo struct {
	// Krb5ConfigMap names a ConfigMap whose key "krb5.conf" is the Kerberos
	// client configuration.
	// +optional
	Krb5ConfigMap string `json:"krb5ConfigMap,omitempty"`

	// KeytabSecretName names a Secret whose keys are keytab files.
	// +optional
	KeytabSecretName string `json:"keytabSecretName,omitempty"`

	// KeytabPath is the directory in the container where Doris finds the keytab
	// files. Default: /etc/keytab.
	// +optional
	KeytabPath string `json:"keytabPath,omitempty"`
}

// SharedPersistentVolumeClaim mounts an existing claim into many Pods.
type SharedPersistentVolumeClaim struct {
	// MountPath is an absolute path in the container. The text "$DORIS_HOME" in
	// it stands for the home directory of the component.
	// +optional
	MountPath string `json:"mountPath,omitempty"`

	// PersistentVolumeClaimName names a claim in the namespace of the cluster.
	// It must have the access mode ReadWriteMany.
	// +optional
	PersistentVolumeClaimName string `json:"persistentVolumeClaimName,omitempty"`

	// SupportComponents lists the components that mount the claim: fe, be, cn,
	// broker. Empty: all of them.
	// +optional
	SupportComponents []ComponentType `json:"supportComponents,omitempty"`
}

// RuntimeConfigPersistence says whether run-time settings are kept.
type RuntimeConfigPersistence struct {
	// Enabled: true keeps them and refuses to run where no safe storage is
	// found; false, before the first deployment, does without. Left out: the
	// policy recorded for the cluster decides.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
}

// ComponentType names a component of the cluster.
type ComponentType string

// The components.
const (
	ComponentFE     ComponentType = "fe"
	ComponentBE     ComponentType = "be"
	ComponentCN     ComponentType = "cn"
	ComponentBroker ComponentType = "broker"
)
