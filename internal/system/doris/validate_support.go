package doris

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// noPlaintextPassword warns of the deprecated account in plain text.
func noPlaintextPassword(dc *dorisv1.DorisCluster) []plan.Finding {
	if dc.Spec.AdminUser == nil || dc.Spec.AdminUser.Password == "" {
		return nil
	}
	message := "the password stands in plain text in this object: put name and password into a Secret of type kubernetes.io/basic-auth, name it in spec.authSecret and remove spec.adminUser"
	if dc.Spec.AuthSecret != "" {
		message = "the password stands in plain text in this object and is not used, since spec.authSecret is set: remove spec.adminUser"
	}
	return []plan.Finding{{
		Severity: plan.Warning, Field: "spec.adminUser", Reason: meta.ReasonDeprecatedField, Message: message,
	}}
}

// everythingSupported names what this version does not do.
func everythingSupported(dc *dorisv1.DorisCluster) []plan.Finding {
	return eachSpec(dc, partsSupported)
}

func partsSupported(field string, spec *dorisv1.BaseSpec) []plan.Finding {
	var findings []plan.Finding
	say := func(field, message string) {
		findings = append(findings, plan.Finding{
			Severity: plan.Unsupported, Field: field, Reason: meta.ReasonNotSupportedYet, Message: message,
		})
	}
	if len(spec.Claims) > 0 {
		say(field+".claims", "resource claims are not supported: the containers get none")
	}
	if init := spec.SystemInitialization; init != nil && len(init.Claims) > 0 {
		say(field+".systemInitialization.claims", "resource claims are not supported: the container gets none")
	}
	return findings
}

// everythingHasEffect names what is set and does nothing.
func everythingHasEffect(dc *dorisv1.DorisCluster) []plan.Finding {
	findings := eachSpec(dc, partsHaveEffect)
	for _, c := range components(dc, Inputs{}, Settings{}) {
		if _, resolves := c.preparation(); !resolves {
			continue
		}
		if _, found := c.spec.Limits[corev1.ResourceCPU]; !found {
			findings = append(findings, idle(c.field+".autoResolveLimitCPU", fmt.Sprintf("there is no CPU limit to tell the %s: set %s.limits.cpu", pluralOf(c.kind), c.field)))
		}
	}
	for _, kind := range backendKinds {
		if spec := specOf(dc, kind); endpointOf(dc, kind) == dorisv1.EndpointLoadBalancer && serviceOf(spec).Type != corev1.ServiceTypeLoadBalancer {
			findings = append(findings, idle(fieldOf(kind)+".streamLoadEndpoint", fmt.Sprintf("a Service of type %s has no load balancer: set %s.service.type to LoadBalancer, or leave the field out", serviceOf(spec).Type, fieldOf(kind))))
		}
	}
	if broker := dc.Spec.BrokerSpec; broker != nil && broker.Service != nil {
		findings = append(findings, idle("spec.brokerSpec.service", "brokers have no Service for clients, since only members of the cluster talk to them: leave it out"))
	}
	return findings
}

func partsHaveEffect(field string, spec *dorisv1.BaseSpec) []plan.Finding {
	var findings []plan.Finding
	_, key := fileFor(componentOfField(field))
	if r := spec.ConfigMapInfo.ResolveKey; r != "" && r != key {
		findings = append(findings, idle(field+".configMapInfo.resolveKey", fmt.Sprintf("the key is always %s: rename the key of the ConfigMap, and leave this field out", key)))
	}
	if service := clientService(field, spec); service.LoadBalancerIP != "" && service.Type != corev1.ServiceTypeLoadBalancer {
		findings = append(findings, idle(field+".service.loadBalancerIP", fmt.Sprintf("a Service of type %s has no load balancer: set %s.service.type to LoadBalancer, or leave the address out", service.Type, field)))
	}
	last := -1
	for i := range spec.PersistentVolumes {
		if spec.PersistentVolumes[i].MountPath != "" {
			continue
		}
		if last >= 0 {
			findings = append(findings, idle(indexed(field+".persistentVolumes", last), "of several entries without a mountPath only the last counts: remove this one, or give it a path"))
		}
		last = i
	}
	return findings
}

func idle(field, message string) plan.Finding {
	return plan.Finding{Severity: plan.Warning, Field: field, Reason: meta.ReasonNoEffect, Message: message}
}
