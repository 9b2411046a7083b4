package doris

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// clientService is the Service for clients that a component gets. Brokers get none,
// whatever their spec says of it.
func clientService(field string, spec *dorisv1.BaseSpec) dorisv1.ExportService {
	if componentOfField(field) == dorisv1.ComponentBroker {
		return serviceOf(&dorisv1.BaseSpec{})
	}
	return serviceOf(spec)
}

func serviceTypeServed(dc *dorisv1.DorisCluster) []plan.Finding {
	return eachSpec(dc, func(field string, spec *dorisv1.BaseSpec) []plan.Finding {
		switch t := clientService(field, spec).Type; t {
		case corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer:
			return nil
		default:
			return []plan.Finding{refusal(field+".service.type", "%q leads to no Pods: use ClusterIP, NodePort or LoadBalancer", t)}
		}
	})
}

func nodePortsDistinct(dc *dorisv1.DorisCluster) []plan.Finding {
	taken := map[int32]string{} // a node port belongs to one Service of the whole cluster
	return eachSpec(dc, func(field string, spec *dorisv1.BaseSpec) []plan.Finding {
		var findings []plan.Finding
		service := clientService(field, spec)
		if service.Type == corev1.ServiceTypeClusterIP {
			return nil // its node ports are not used, which is said elsewhere
		}
		for i, p := range service.ServicePorts {
			field := indexed(field+".service.servicePorts", i) + ".nodePort"
			other, twice := taken[p.NodePort]
			switch {
			case p.NodePort == 0: // left to Kubernetes
			case p.NodePort < 1 || p.NodePort > 65535:
				findings = append(findings, refusal(field, "%d is no port: use one between 30000 and 32767, or 0 to let Kubernetes choose", p.NodePort))
			case twice:
				findings = append(findings, refusal(field, "%d is used by %s as well: give each its own", p.NodePort, other))
			default:
				taken[p.NodePort] = field
			}
			if p.NodePort > 0 && p.NodePort <= 65535 && (p.NodePort < 30000 || p.NodePort > 32767) {
				findings = append(findings, plan.Finding{
					Severity: plan.Warning, Field: field, Reason: meta.ReasonInvalidSpec,
					Message: fmt.Sprintf("%d lies outside 30000 to 32767, the node ports of Kubernetes unless its API server is told otherwise: the Service may be refused", p.NodePort),
				})
			}
		}
		return findings
	})
}

// serviceAnnotationsLegal checks the annotations of the Service for clients.
func serviceAnnotationsLegal(dc *dorisv1.DorisCluster) []plan.Finding {
	return eachSpec(dc, func(field string, spec *dorisv1.BaseSpec) []plan.Finding {
		var f faults
		service := clientService(field, spec)
		field += ".service.annotations"
		f.annotations(field, service.Annotations)
		if _, ours := service.Annotations[meta.AnnotationInputs]; ours {
			f.idlef(keyed(field, meta.AnnotationInputs), "the operator writes this annotation itself: leave it out")
		}
		ranges, found := service.Annotations[corev1.AnnotationLoadBalancerSourceRangesKey]
		if !found {
			return f
		}
		at := keyed(field, corev1.AnnotationLoadBalancerSourceRangesKey)
		if service.Type != corev1.ServiceTypeLoadBalancer {
			f.refusef(at, "a Service of type %s may not have it: set the type to LoadBalancer, or leave the annotation out", service.Type)
			return f
		}
		if strings.TrimSpace(ranges) == "" {
			return f
		}
		for r := range strings.SplitSeq(ranges, ",") {
			if len(validation.IsValidCIDRForLegacyField(nil, strings.TrimSpace(r), false, nil)) > 0 {
				f.refusef(at, "%s is no range of addresses: write ranges such as 10.0.0.0/8, with commas between them", shown(r))
			}
		}
		return f
	})
}
