package doris

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// Referenced names the objects that a spec refers to and that the operator does
// not make itself, each once and sorted.
type Referenced struct {
	ConfigMaps, Secrets, Claims []string
}

// References returns what has to be read to render a cluster. A name that no object
// can have is not among it: it is refused, and a request for it would fail before
// that could be said.
func References(dc *dorisv1.DorisCluster) Referenced {
	configMaps, secrets, claims := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, r := range references(dc) {
		if len(validation.IsDNS1123Subdomain(r.name)) > 0 {
			continue
		}
		switch r.kind {
		case "ConfigMap":
			configMaps[r.name] = true
		case "Secret":
			secrets[r.name] = true
		case "PersistentVolumeClaim":
			claims[r.name] = true
		}
	}
	return Referenced{ConfigMaps: sortedKeys(configMaps), Secrets: sortedKeys(secrets), Claims: sortedKeys(claims)}
}

// reference is one object that one component needs.
type reference struct {
	component         dorisv1.ComponentType
	kind, name, field string
}

const accountField = "spec.authSecret"

// references lists what each component of a cluster needs, in a fixed order.
func references(dc *dorisv1.DorisCluster) []reference {
	var list []reference
	for _, c := range components(dc, Inputs{}, Settings{}) {
		add := func(kind, name, field string) {
			if name != "" {
				list = append(list, reference{c.kind, kind, name, field})
			}
		}
		for _, m := range configMapsOf(c.spec, c.field) {
			add("ConfigMap", m.name, m.field)
		}
		for _, m := range secretsOf(c.spec, c.field) {
			add("Secret", m.name, m.field)
		}
		add("Secret", dc.Spec.AuthSecret, accountField)
		if k := dc.Spec.KerberosInfo; k != nil {
			add("ConfigMap", k.Krb5ConfigMap, "spec.kerberosInfo.krb5ConfigMap")
			add("Secret", k.KeytabSecretName, "spec.kerberosInfo.keytabSecretName")
		}
		for i, s := range dc.Spec.SharedPersistentVolumeClaims {
			if sharedWith(s, c.kind) {
				add("PersistentVolumeClaim", s.PersistentVolumeClaimName, indexed("spec.sharedPersistentVolumeClaims", i))
			}
		}
	}
	return list
}

// sharedWith tells whether a component mounts a shared claim.
func sharedWith(s dorisv1.SharedPersistentVolumeClaim, kind dorisv1.ComponentType) bool {
	return len(s.SupportComponents) == 0 || slices.Contains(s.SupportComponents, kind)
}

// missing lists the references that lead nowhere.
func missing(dc *dorisv1.DorisCluster, in Inputs) []Missing {
	var list []Missing
	for _, r := range references(dc) {
		m := Missing{
			Component: r.component, Field: r.field,
			On:      plan.Ref{Kind: r.kind, Namespace: dc.Namespace, Name: r.name},
			Message: fmt.Sprintf("%s names %s %q, which does not exist in namespace %q: create it, or change the field", r.field, r.kind, r.name, dc.Namespace),
		}
		if r.existsIn(in) {
			if r.field != accountField || in.AccountFault == "" {
				continue
			}
			m.Message = in.AccountFault
		}
		list = append(list, m)
		if r.component != dorisv1.ComponentFE || r.kind != "ConfigMap" {
			continue
		}
		for _, other := range rendered[1:] {
			// All are told the query port of the frontends, which may stand in it.
			if m.Component = other; specOf(dc, other) != nil {
				list = append(list, m)
			}
		}
	}
	return list
}

func (r reference) existsIn(in Inputs) bool {
	switch r.kind {
	case "ConfigMap":
		return in.ConfigMaps[r.name] != nil
	case "Secret":
		return in.Secrets[r.name]
	}
	return in.Claims == nil || in.Claims[r.name] != nil
}

// sharedClaimsShared refuses shared claims that only one node may mount.
func sharedClaimsShared(dc *dorisv1.DorisCluster, in Inputs) []plan.Finding {
	var findings []plan.Finding
	for i, s := range dc.Spec.SharedPersistentVolumeClaims {
		claim := in.Claims[s.PersistentVolumeClaimName]
		if claim == nil || slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteMany) {
			continue
		}
		findings = append(findings, refusal(indexed("spec.sharedPersistentVolumeClaims", i),
			"claim %q does not allow ReadWriteMany, so not all Pods can mount it: name one that does", s.PersistentVolumeClaimName))
	}
	return findings
}
