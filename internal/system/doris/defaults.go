package doris

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
)

// What counts where the spec says nothing. Nothing else in this package may give
// a field of the spec a default, and nothing may read a pointer of the spec
// without going through here or checking it.
const (
	defaultReplicas = 3
	// maxReplicas bounds what a typing error can ask for. Every Pod is named in
	// the status, and the object has to stay well below what the API server stores.
	maxReplicas = 1000

	defaultElectionNumber = 3

	// minimumStartSeconds is the shortest time that a container gets to start.
	minimumStartSeconds = 360
	defaultLiveSeconds  = 180

	defaultReadyTimeout = 1
	defaultReadyFailure = 3
	defaultReadyPeriod  = 5

	defaultFrontendGrace = 330
	defaultBackendGrace  = 200
	defaultBrokerGrace   = 30
	// What a Pod gets on top of the time that Doris itself is told to wait.
	frontendGraceMargin = 30
	backendGraceMargin  = 80

	defaultQueryPort  = 9030
	defaultMountPath  = "/etc/doris"
	defaultKeytabPath = "/etc/keytab"
	defaultKrb5Conf   = "/etc/krb5.conf"
)

// replicasOf returns how many frontends or backends there should be.
func replicasOf(spec *dorisv1.BaseSpec) int32 {
	if spec.Replicas == nil {
		return defaultReplicas
	}
	return min(max(*spec.Replicas, 0), maxReplicas)
}

// wantedReplicas returns how many Pods a component that the cluster has should
// have.
func wantedReplicas(dc *dorisv1.DorisCluster, kind dorisv1.ComponentType) int32 {
	spec := specOf(dc, kind)
	switch {
	case spec.Replicas != nil, kind == dorisv1.ComponentFE, kind == dorisv1.ComponentBE:
		return replicasOf(spec)
	case kind == dorisv1.ComponentCN && dc.Spec.CnSpec.AutoScalingPolicy != nil:
		return min(max(minReplicasOf(dc.Spec.CnSpec.AutoScalingPolicy), 1), maxReplicas)
	}
	return 1
}

// minReplicasOf returns the lowest number of Pods that an autoscaler may choose.
func minReplicasOf(policy *dorisv1.AutoScalingPolicy) int32 {
	if policy.MinReplicas == nil {
		return 1
	}
	return *policy.MinReplicas
}

// electionNumberOf returns how many frontends are followers.
func electionNumberOf(spec *dorisv1.FeSpec) int32 {
	if spec.ElectionNumber == nil {
		return defaultElectionNumber
	}
	return *spec.ElectionNumber
}

// serviceOf returns the Service that clients use, never nil.
func serviceOf(spec *dorisv1.BaseSpec) dorisv1.ExportService {
	var service dorisv1.ExportService
	if spec.Service != nil {
		service = *spec.Service
	}
	service.Type = cmp.Or(service.Type, corev1.ServiceTypeClusterIP)
	return service
}

// externalFrontends returns where the frontends of a component are when its spec
// says so: addresses, or the name of a Service. Empty means those of the cluster
// itself.
func externalFrontends(spec *dorisv1.BaseSpec) (addresses []string, queryPort int32) {
	if spec.FeAddress == nil {
		return nil, 0
	}
	endpoints := spec.FeAddress.Endpoints
	lists := [][]string{endpoints.Address, endpoints.LegacyAddress, {spec.FeAddress.ServiceName}}
	for _, list := range lists {
		for _, a := range list {
			if a != "" {
				addresses = append(addresses, a)
			}
		}
		if len(addresses) > 0 {
			port := int32(defaultQueryPort)
			if endpoints.Port > 0 && endpoints.Port <= 65535 {
				port = int32(endpoints.Port)
			}
			return addresses, port
		}
	}
	return nil, 0
}

// configMapsOf returns the ConfigMaps that a component mounts, in the order in
// which they are searched for its configuration file.
func configMapsOf(spec *dorisv1.BaseSpec, field string) []mountRequest {
	var requests []mountRequest
	info := spec.ConfigMapInfo
	if info.ConfigMapName != "" {
		requests = append(requests, mountRequest{
			field: field + ".configMapInfo.configMapName", name: info.ConfigMapName, path: defaultMountPath,
		})
	}
	for i, m := range info.ConfigMaps {
		requests = append(requests, mountRequest{
			field: indexed(field+".configMapInfo.configMaps", i), name: m.ConfigMapName,
			path: cmp.Or(m.MountPath, defaultMountPath),
		})
	}
	return requests
}

// secretsOf returns the Secrets that a component mounts.
func secretsOf(spec *dorisv1.BaseSpec, field string) []mountRequest {
	var requests []mountRequest
	for i, s := range spec.Secrets {
		requests = append(requests, mountRequest{
			field: indexed(field+".secrets", i), name: s.SecretName, path: cmp.Or(s.MountPath, defaultMountPath),
		})
	}
	return requests
}

// mountRequest is an object that a spec wants to have mounted.
type mountRequest struct {
	field, name, path string
}

// claimSpecOf returns the claim of a volume. A claim without access modes would
// be refused.
func claimSpecOf(pv *dorisv1.PersistentVolume) corev1.PersistentVolumeClaimSpec {
	claim := *pv.PersistentVolumeClaimSpec.DeepCopy()
	if len(claim.AccessModes) == 0 {
		claim.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	}
	return claim
}
