package v1

// Annotations on a DorisCluster.
const (
	// AnnotationFERestartedAt asks for a rolling restart of the frontends; its
	// value is an RFC 3339 time.
	AnnotationFERestartedAt = "apache.doris.fe/restartedAt"

	// AnnotationBERestartedAt asks for a rolling restart of the backends; its
	// value is an RFC 3339 time.
	AnnotationBERestartedAt = "apache.doris.be/restartedAt"

	// AnnotationCNRestartedAt asks for a rolling restart of the compute nodes; its
	// value is an RFC 3339 time.
	AnnotationCNRestartedAt = "apache.doris.cn/restartedAt"

	// AnnotationBrokerRestartedAt asks for a rolling restart of the brokers; its
	// value is an RFC 3339 time.
	AnnotationBrokerRestartedAt = "apache.doris.broker/restartedAt"

	// AnnotationRuntimeConfigPolicy records how settings changed at run time are
	// kept in this cluster. The operator writes it once.
	AnnotationRuntimeConfigPolicy = "doris.apache.org/runtime-config-policy"

	// AnnotationRuntimeConfigMigration is a person's approval of a migration: the
	// settings that were changed at run time in a cluster that did not keep them
	// have been copied to its volumes. `kubectl fairlead runtime-config migrate`
	// writes it; there are no settings in it.
	AnnotationRuntimeConfigMigration = "doris.apache.org/runtime-config-migration"
)

// Annotations on Pods, set through spec.<component>.annotations or by hand. The
// images read them from a file that Kubernetes keeps up to date.
const (
	// AnnotationRunMode with the value RunModeDebug starts a container that
	// serves its liveness port and waits, so that a person can look around.
	AnnotationRunMode = "selectdb.com.doris/runmode"

	// AnnotationRunModeApache is another name of AnnotationRunMode.
	AnnotationRunModeApache = "apache.org.doris/runmode"

	// RunModeDebug is the value of the two annotations above.
	RunModeDebug = "debug"

	// AnnotationRecovery on a frontend Pod starts it in metadata failure
	// recovery; any value counts.
	AnnotationRecovery = "selectdb.com.doris/recovery"
)

// Labels on rendered objects. Selectors of existing clusters hold them, so they
// never change.
const (
	// LabelOwner names the cluster on StatefulSets and Services, and the
	// StatefulSet (<cluster>-<component>) on Pods and claims.
	LabelOwner = "app.doris.ownerreference/name"

	// LabelComponent names the component: fe, be, cn or broker.
	LabelComponent = "app.kubernetes.io/component"

	// LabelCluster names the cluster on Pods.
	LabelCluster = "app.doris.cluster"

	// LabelServiceRole tells internal Services from those for users.
	LabelServiceRole = "app.doris.service/role"

	// ServiceRoleInternal is the role of a headless Service that gives Pods
	// their names.
	ServiceRoleInternal = "internal"

	// ServiceRoleAccess is the role of a Service that clients use.
	ServiceRoleAccess = "access"
)
