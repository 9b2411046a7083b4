package doris

import (
	"fmt"
	"sort"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
	"github.com/fairlead-dev/fairlead/internal/system/doris/runtimeconfig"
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
	// Mounted holds them as the Pods of a component see them, where that is another
	// content; a component that is not named sees those above.
	Mounted map[dorisv1.ComponentType]map[string]*corev1.ConfigMap
	// Secrets tells which of the Secrets that References names exist.
	Secrets map[string]bool
	// AccountFault says why the Secret that is named as the account is none.
	AccountFault string
	// Claims holds the shared claims that References names. A nil map means that
	// nobody looked, and then they are not checked.
	Claims map[string]*corev1.PersistentVolumeClaim
	// DataInCompute tells that there are compute nodes whose configuration never
	// made compute nodes of them: they may hold data.
	DataInCompute bool
	// Bootstrapped tells that the frontends of this cluster have served before, so
	// that all of them may run.
	Bootstrapped bool
	// Copies names, for the name of a ConfigMap of the user, the immutable copy of
	// its content that Pods mount in its stead. One that is not named is mounted
	// itself. Revision 0 mounts no copies.
	Copies map[string]string
	// Runtime says where each component keeps settings that are changed at run time.
	// At revision 0 they are kept where a migration was approved.
	Runtime map[dorisv1.ComponentType]*runtimeconfig.Record
}

// Objects are the objects of a cluster.
type Objects struct { //nolint:recvcheck // render fills it, and all else reads it
	// Components in the order in which they are brought up: fe, be, cn, broker.
	Components []Component
	// Secrets and ConfigMaps that the operator makes itself.
	Secrets    []*corev1.Secret
	ConfigMaps []*corev1.ConfigMap
	// Autoscaler chooses the number of compute nodes; nil where nobody asked for one.
	Autoscaler *autoscalingv2.HorizontalPodAutoscaler
	// Missing lists what the spec refers to and what does not exist. The objects of
	// a component that lacks something are only to be looked at, not applied: they
	// may differ once it is there.
	Missing []Missing
	// Settings are what was read from configuration files.
	Settings
}

// Component is one component of a cluster.
type Component struct {
	Type dorisv1.ComponentType
	// StatefulSet without a number of replicas, which is written apart.
	StatefulSet *appsv1.StatefulSet
	// Services: the internal one, then the one for clients, which brokers have not.
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
	settings, read := ReadSettings(dc, in)
	objects := Objects{Settings: settings, Autoscaler: autoscaler(dc), Missing: missing(dc, in)}
	findings = append(append(findings, read...), sharedClaimsShared(dc, in)...)
	findings = append(findings, computeRole(dc, in, settings, objects.Missing)...)
	findings = append(findings, computePolicy(dc, in)...)
	findings = append(findings, objects.render(dc, in)...)
	if dc.Spec.FeSpec != nil && !settings.Frontend.FQDN {
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
		for _, c := range componentsR0(dc, in, o.Settings) {
			built, found := c.buildR0()
			o.Components = append(o.Components, built)
			findings = append(findings, found...)
		}
		return findings
	}
	for _, c := range components(dc, in, o.Settings) {
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
