package doris

import (
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// internalService returns the headless Service that gives the Pods their DNS
// names, also before they are ready.
func (c component) internalService() *corev1.Service {
	service := c.service(InternalServiceName(c.dc.Name, c.kind), dorisv1.ServiceRoleInternal)
	service.Spec.ClusterIP = corev1.ClusterIPNone
	service.Spec.Type = corev1.ServiceTypeClusterIP
	service.Spec.PublishNotReadyAddresses = true
	for _, p := range c.ports {
		if p.Number == c.alive {
			service.Spec.Ports = []corev1.ServicePort{servicePort(p)}
			break
		}
	}
	return service
}

// accessService returns the Service that clients use. It holds only fields that
// the operator owns: an address, a health check port or a node port that someone
// else chose stays.
func (c component) accessService() (*corev1.Service, []plan.Finding) {
	wanted := serviceOf(c.spec)
	service := c.service(AccessServiceName(c.dc.Name, c.kind), dorisv1.ServiceRoleAccess)
	maps.Copy(service.Annotations, wanted.Annotations)
	service.Annotations[meta.AnnotationInputs] = c.serviceInputs().String()
	service.Spec.Type = wanted.Type
	service.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
	if wanted.Type == corev1.ServiceTypeLoadBalancer {
		service.Spec.SessionAffinity = corev1.ServiceAffinityNone
		service.Spec.LoadBalancerIP = wanted.LoadBalancerIP
	}
	for _, p := range c.ports {
		service.Spec.Ports = append(service.Spec.Ports, servicePort(p))
	}
	return service, c.fixNodePorts(wanted, service.Spec.Ports)
}

// fixNodePorts gives ports the node ports that the user fixed.
func (c component) fixNodePorts(wanted dorisv1.ExportService, ports []corev1.ServicePort) []plan.Finding {
	var findings []plan.Finding
	for i, fixed := range wanted.ServicePorts {
		if fixed.NodePort == 0 {
			continue
		}
		found := false
		for j := range ports {
			if ports[j].Port == fixed.TargetPort {
				found = true
				if wanted.Type != corev1.ServiceTypeClusterIP {
					ports[j].NodePort = fixed.NodePort
				}
			}
		}
		field := indexed(c.field+".service.servicePorts", i)
		switch {
		case !found:
			findings = append(findings, plan.Finding{
				Severity: plan.Warning, Field: field + ".targetPort", Reason: meta.ReasonNoEffect,
				Message: fmt.Sprintf("no port of %s is %d, so node port %d is not used: name one of %s", c.kind, fixed.TargetPort, fixed.NodePort, describePorts(c.ports)),
			})
		case wanted.Type == corev1.ServiceTypeClusterIP:
			findings = append(findings, plan.Finding{
				Severity: plan.Warning, Field: field + ".nodePort", Reason: meta.ReasonNoEffect,
				Message: "a Service of type ClusterIP has no node ports: set " + c.field + ".service.type to NodePort, or leave the node port out",
			})
		}
	}
	return findings
}

func describePorts(ports []Port) string {
	words := make([]string, 0, len(ports))
	for _, p := range ports {
		words = append(words, fmt.Sprintf("%d (%s)", p.Number, p.Name))
	}
	return strings.Join(words, ", ")
}

func (c component) service(name, role string) *corev1.Service {
	service := &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: objectMeta(c.dc, name, serviceLabels(c.dc.Name, c.kind, role)),
		Spec:       corev1.ServiceSpec{Selector: SelectorLabels(c.dc.Name, c.kind)},
	}
	service.Annotations = map[string]string{meta.AnnotationInputs: c.portInputs().String()}
	return service
}

func servicePort(p Port) corev1.ServicePort {
	return corev1.ServicePort{
		Name: p.Name, Port: p.Number, TargetPort: intstr.FromInt32(p.Number), Protocol: corev1.ProtocolTCP,
	}
}
