package doris

import (
	"fmt"
	"sort"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// LatestRevision is the newest version of the rendering. The output of an older
// one never changes: golden files hold it.
const LatestRevision = 1

// Inputs are what the objects of a cluster are rendered from, besides its spec.
type Inputs struct {
	// Revision is the version of the rendering that the cluster uses.
	Revision int
	// ConfigMaps holds the ConfigMaps that References names; nil or absent for one
	// that does not exist.
	ConfigMaps map[string]*corev1.ConfigMap
	// Secrets tells which of the Secrets that References names exist.
	Secrets map[string]bool
	// Claims holds the shared claims that References names. A nil map means that
	// nobody looked, and then they are not checked.
	Claims map[string]*corev1.PersistentVolumeClaim
	// Bootstrapped tells that the frontends of this cluster have served before, so
	// that all of them may run.
	Bootstrapped bool
	// Copies names, for the name of a ConfigMap of the user, the immutable copy of
	// its content that Pods mount in its stead. One that is not named is mounted
	// itself. Revision 0 mounts no copies.
	Copies map[string]string
}

// Objects are the objects of a cluster.
type Objects struct { //nolint:recvcheck // render fills it, and all else reads it
	// Components in the order in which they are brought up: fe, be.
	Components []Component
	// Secrets and ConfigMaps that the operator makes itself.
	Secrets    []*corev1.Secret
	ConfigMaps []*corev1.ConfigMap
	// Missing lists what the spec refers to and what does not exist. The objects of
	// a component that lacks something are only to be looked at, not applied: they
	// may differ once it is there.
	Missing []Missing
	// Frontend and Backend are the settings that were read.
	Frontend FrontendConfig
	Backend  BackendConfig
}

// Component is one component of a cluster.
type Component struct {
	Type dorisv1.ComponentType
	// StatefulSet without a number of replicas, which is written apart.
	StatefulSet *appsv1.StatefulSet
	// Services: the internal one, then the one for clients.
	Services []*corev1.Service
	// Replicas is how many Pods should run now, and FullReplicas how many in the
	// end. They differ while the first frontend starts alone (not at revision 0).
	Replicas, FullReplicas int32
}

// Missing is an object that the spec refers to and that does not exist.
type Missing struct {
	Component dorisv1.ComponentType
	On        plan.Ref
	// Field of the spec that refers to it.
	Field   string
	Message string
}

// Component returns a component, if the cluster has it.
func (o Objects) Component(c dorisv1.ComponentType) (Component, bool) {
	for i := range o.Components {
		if o.Components[i].Type == c {
			return o.Components[i], true
		}
	}
	return Component{}, false
}

// MissingFor returns what a component lacks.
func (o Objects) MissingFor(c dorisv1.ComponentType) []Missing {
	var missing []Missing
	for _, m := range o.Missing {
		if m.Component == c {
			missing = append(missing, m)
		}
	}
	return missing
}

// Desired renders the objects of a cluster. It is pure: same input, same bytes.
// A finding that is a refusal means that nothing is to be applied.
func Desired(dc *dorisv1.DorisCluster, in Inputs) (Objects, []plan.Finding) {
	findings := Validate(dc)
	if in.Revision < 0 || in.Revision > LatestRevision {
		return Objects{}, append(findings, plan.Finding{
			Severity: plan.Refusal, Field: "metadata.annotations", Reason: meta.ReasonInvalidSpec,
			Message: fmt.Sprintf("revision %d of the rendering is not known to this version of the operator, which knows 0 to %d: use a version that does", in.Revision, LatestRevision),
		})
	}
	fe, feFindings := ReadFrontendConfig(dc, in.ConfigMaps)
	be, beFindings := ReadBackendConfig(dc, in.ConfigMaps)
	objects := Objects{Frontend: fe, Backend: be, Missing: missing(dc, in)}
	findings = append(append(append(findings, feFindings...), beFindings...), sharedClaimsShared(dc, in)...)
	findings = append(findings, objects.render(dc, in)...)
	if dc.Spec.FeSpec != nil && !fe.FQDN {
		findings = append(findings, plan.Finding{
			Severity: plan.Warning, Field: "spec.feSpec.configMapInfo", Reason: meta.ReasonUnstableIdentity,
			Message: "fe.conf does not hold enable_fqdn_mode = true, so members know each other by addresses that change when a Pod is replaced. Set it before the cluster is first started",
		})
	}
	return objects, findings
}

// render adds the objects of the components, in the rendering that the cluster
// uses.
func (o *Objects) render(dc *dorisv1.DorisCluster, in Inputs) []plan.Finding {
	var findings []plan.Finding
	if in.Revision == 0 {
		for _, c := range componentsR0(dc, in, o.Frontend, o.Backend) {
			built, found := c.buildR0()
			o.Components = append(o.Components, built)
			findings = append(findings, found...)
		}
		return findings
	}
	for _, c := range components(dc, in, o.Frontend, o.Backend) {
		built, found := c.build()
		o.Components = append(o.Components, built)
		findings = append(findings, found...)
	}
	if secret := adminSecret(dc); secret != nil {
		o.Secrets = append(o.Secrets, secret)
	}
	if in.Bootstrapped && dc.Spec.FeSpec != nil {
		o.ConfigMaps = append(o.ConfigMaps, bootstrapRecord(dc))
	}
	return findings
}

// component is one component while it is rendered.
type component struct {
	dc    *dorisv1.DorisCluster
	in    Inputs
	kind  dorisv1.ComponentType
	field string
	spec  *dorisv1.BaseSpec

	ports []Port
	// alive is the port whose listening means that the process is up, and health
	// the one that tells whether it serves.
	alive, health int32
	fqdn          bool
	tls           *TLSFiles
	// dataDirs are where the data lies that must not be lost.
	dataDirs     []string
	dataName     string
	home         string
	krb5Conf     string
	graceSeconds int64
	feQueryPort  int32
	// prepare tells whether the node is prepared by a privileged container.
	prepare bool
	// One of them is set.
	fe     *dorisv1.FeSpec
	be     *dorisv1.BeSpec
	cn     *dorisv1.CnSpec
	broker *dorisv1.BrokerSpec
}

// components returns the components of a cluster in the order in which they are
// brought up.
func components(dc *dorisv1.DorisCluster, in Inputs, fe FrontendConfig, be BackendConfig) []component {
	var list []component
	fqdn := fe.FQDN // one decision for the whole cluster
	if dc.Spec.FeSpec == nil {
		fqdn = be.FQDN
	}
	if spec := dc.Spec.FeSpec; spec != nil {
		list = append(list, component{
			dc: dc, in: in, kind: dorisv1.ComponentFE, field: "spec.feSpec", spec: &spec.BaseSpec, fe: spec,
			ports: fe.Ports(), alive: fe.Query, health: fe.HTTP, fqdn: fqdn, tls: fe.TLS,
			dataDirs: []string{fe.MetaDir}, dataName: "fe-meta", home: frontendHome, krb5Conf: fe.Krb5Conf,
			graceSeconds: grace(fe.GraceSeconds, frontendGraceMargin, defaultFrontendGrace),
			feQueryPort:  fe.Query,
		})
	}
	if spec := dc.Spec.BeSpec; spec != nil {
		list = append(list, component{
			dc: dc, in: in, kind: dorisv1.ComponentBE, field: "spec.beSpec", spec: &spec.BaseSpec, be: spec,
			ports: be.Ports(), alive: be.Heartbeat, health: be.Web, fqdn: fqdn, tls: be.TLS,
			dataDirs: be.StorageRoots, dataName: "be-storage", home: backendHome, krb5Conf: be.Krb5Conf,
			graceSeconds: grace(be.GraceSeconds, backendGraceMargin, defaultBackendGrace),
			feQueryPort:  fe.Query, prepare: !spec.SkipDefaultSystemInit,
		})
	}
	return list
}

// grace returns how long a Pod gets to stop: what Doris waits and a margin, or a
// default.
func grace(configured, margin, missing int64) int64 {
	if configured <= 0 {
		return missing
	}
	return configured + margin
}

// build renders the objects of the component.
func (c component) build() (Component, []plan.Finding) {
	set, findings := c.statefulSet()
	access, portFindings := c.accessService()
	built := Component{
		Type: c.kind, StatefulSet: set, Services: []*corev1.Service{c.internalService(), access},
		Replicas: replicasOf(c.spec), FullReplicas: replicasOf(c.spec),
	}
	if c.fe != nil && !c.in.Bootstrapped {
		if external, _ := externalFrontends(c.spec); len(external) == 0 {
			built.Replicas = min(built.Replicas, 1)
		}
	}
	return built, append(findings, portFindings...)
}

// objectMeta returns the metadata of an object of the cluster.
func objectMeta(dc *dorisv1.DorisCluster, name string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: dc.Namespace, Labels: labels,
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: dorisv1.GroupVersion.String(), Kind: dorisv1.Kind,
			Name: dc.Name, UID: dc.UID, Controller: new(true),
		}},
	}
}

// adminSecret returns the Secret that carries the deprecated plain-text account
// to the Pods, nil where there is none. It keeps the password out of Pod
// templates.
func adminSecret(dc *dorisv1.DorisCluster) *corev1.Secret {
	user := dc.Spec.AdminUser
	if user == nil || dc.Spec.AuthSecret != "" {
		return nil
	}
	name := user.Name
	if name == "" {
		name = defaultUser
	}
	return &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: objectMeta(dc, AdminSecretName(dc.Name), map[string]string{
			dorisv1.LabelOwner: dc.Name,
		}),
		Type: corev1.SecretTypeBasicAuth,
		Data: map[string][]byte{
			corev1.BasicAuthUsernameKey: []byte(name),
			corev1.BasicAuthPasswordKey: []byte(user.Password),
		},
	}
}

// authSecretName returns the Secret with the management account, empty where
// there is none.
func authSecretName(dc *dorisv1.DorisCluster) string {
	switch {
	case dc.Spec.AuthSecret != "":
		return dc.Spec.AuthSecret
	case dc.Spec.AdminUser != nil:
		return AdminSecretName(dc.Name)
	}
	return ""
}

// bootstrapRecord returns the ConfigMap by which the first frontend knows that
// this cluster has served before. The frontends mount it as optional, so that
// its appearance changes no Pod template.
func bootstrapRecord(dc *dorisv1.DorisCluster) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: objectMeta(dc, BootstrapConfigMapName(dc.Name), ObjectLabels(dc.Name, dorisv1.ComponentFE)),
		Data:       map[string]string{bootstrapKey: "true"},
	}
}

// indexed returns the field of a list entry.
func indexed(field string, i int) string {
	return fmt.Sprintf("%s[%d]", field, i)
}

// sortedKeys returns the keys of a map in order.
func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
