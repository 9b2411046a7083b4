package doris

import (
	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/api/meta"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// autoscalingLegal checks the bounds of the autoscaler. Its metrics and behaviour are
// left to Kubernetes.
func autoscalingLegal(dc *dorisv1.DorisCluster) []plan.Finding {
	policy := autoscalingPolicy(dc)
	if policy == nil {
		return nil
	}
	var f faults
	least, most := minReplicasOf(policy), policy.MaxReplicas
	switch {
	case most < 1:
		f.refusef(fieldPolicy+".maxReplicas", "%d leaves no number to choose from: set it to the most compute nodes that you want", most)
	case most > maxReplicas:
		f.refusef(fieldPolicy+".maxReplicas", "%d is more than the %d Pods that one component can have here: set it to what you mean", most, maxReplicas)
	case least > most:
		f.refusef(fieldPolicy+".minReplicas", "%d is more than maxReplicas, which is %d: raise that, or lower this", least, most)
	}
	if least < 0 {
		f.refusef(fieldPolicy+".minReplicas", "%d is negative: set it to 1 or more, or leave it out for 1", least)
	}
	switch policy.Version {
	case "", dorisv1.AutoScalerV2:
	case dorisv1.AutoScalerV1:
		if policy.HPAPolicy != nil {
			f.idlef(fieldPolicy+".hpaPolicy", "the version is v1, which knows bounds alone and aims at %d %% of the requested CPU: set the version to v2, or leave it out", defaultUtilization)
		}
	default:
		f.idlef(fieldPolicy+".version", "%s is no version that is known and counts as v2: use v1 or v2, or leave it out", shown(policy.Version))
	}
	return f
}

// computeRole checks that the configuration makes compute nodes of the Pods: nothing
// else does, and without it they join as backends that hold data. New ones are
// refused. Those that run without it are left as they are, and looked after as what
// they are.
func computeRole(dc *dorisv1.DorisCluster, in Inputs, s Settings, missing []Missing) []plan.Finding {
	if dc.Spec.CnSpec == nil || s.Compute.Computation {
		return nil
	}
	for _, m := range missing {
		if m.Component == dorisv1.ComponentCN {
			return nil // it may stand there
		}
	}
	finding := plan.Finding{
		Severity: plan.Refusal, Field: "spec.cnSpec.configMapInfo", Reason: meta.ReasonInvalidConfiguration,
		Message: "no be.conf says that these are compute nodes, so they would join as backends that hold data: put a be.conf with the line be_node_role = computation into a ConfigMap and name it here",
	}
	if in.DataInCompute {
		finding.Severity = plan.Warning
		finding.Message = "no be.conf says that these are compute nodes, so they are backends that hold data, and are treated as such: to have compute nodes, take them out and make new ones whose be.conf has the line be_node_role = computation"
	}
	return []plan.Finding{finding}
}

// computePolicy says that compute nodes have one way to leave: they hold nothing. It
// is another matter where they are backends in truth.
func computePolicy(dc *dorisv1.DorisCluster, in Inputs) []plan.Finding {
	cn := dc.Spec.CnSpec
	if cn == nil || cn.ScaleInPolicy != dorisv1.ScaleInDecommission || in.DataInCompute {
		return nil
	}
	return []plan.Finding{idle("spec.cnSpec.scaleInPolicy", "compute nodes hold no data, so there is nothing to move away and they are dropped: leave it out")}
}
