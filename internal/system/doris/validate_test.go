package doris

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
	"github.com/fairlead-dev/fairlead/internal/plan"
)

// valid returns a spec in which Validate finds nothing.
func valid() *dorisv1.DorisCluster {
	dc := &dorisv1.DorisCluster{}
	dc.Name = "shop"
	dc.Spec.FeSpec = &dorisv1.FeSpec{BaseSpec: dorisv1.BaseSpec{Image: "fe"}}
	dc.Spec.BeSpec = &dorisv1.BeSpec{BaseSpec: dorisv1.BaseSpec{Image: "be"}}
	return dc
}

func TestValidate(t *testing.T) {
	t.Parallel()
	storage := corev1.PersistentVolumeClaimSpec{Resources: corev1.VolumeResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
	}}
	address := &dorisv1.FeAddress{ServiceName: "elsewhere"}
	tests := map[string]struct {
		change func(dc *dorisv1.DorisCluster)
		// want is "Severity field"; empty where nothing is found.
		want string
	}{
		"images alone are enough":            {func(*dorisv1.DorisCluster) {}, ""},
		"empty spec is a cluster of nothing": {func(dc *dorisv1.DorisCluster) { dc.Spec = dorisv1.DorisClusterSpec{} }, "Warning spec"},
		"name with a dot":                    {func(dc *dorisv1.DorisCluster) { dc.Name = "a.b" }, "Refusal metadata.name"},
		"name of 49 characters":              {func(dc *dorisv1.DorisCluster) { dc.Name = strings.Repeat("a", 49) }, ""},
		"name of 50 characters":              {func(dc *dorisv1.DorisCluster) { dc.Name = strings.Repeat("a", 50) }, "Refusal metadata.name"},
		"backends without frontends":         {func(dc *dorisv1.DorisCluster) { dc.Spec.FeSpec = nil }, "Refusal spec.feSpec"},
		"frontends elsewhere, by Service":    {func(dc *dorisv1.DorisCluster) { dc.Spec.FeSpec, dc.Spec.BeSpec.FeAddress = nil, address }, ""},
		"address that names nothing":         {func(dc *dorisv1.DorisCluster) { dc.Spec.FeSpec, dc.Spec.BeSpec.FeAddress = nil, &dorisv1.FeAddress{} }, "Refusal spec.feSpec"},
		"no frontend runs":                   {func(dc *dorisv1.DorisCluster) { dc.Spec.FeSpec.Replicas = new(int32(0)) }, "Refusal spec.feSpec.replicas"},
		"no frontend runs, others elsewhere": {func(dc *dorisv1.DorisCluster) {
			dc.Spec.FeSpec.Replicas, dc.Spec.BeSpec.FeAddress = new(int32(0)), address
		}, ""},
		"the whole cluster is stopped": {func(dc *dorisv1.DorisCluster) {
			dc.Spec.FeSpec.Replicas, dc.Spec.BeSpec.Replicas = new(int32(0)), new(int32(0))
		}, ""},
		"more replicas than anybody means":   {func(dc *dorisv1.DorisCluster) { dc.Spec.BeSpec.Replicas = new(int32(2_000_000_000)) }, "Refusal spec.beSpec.replicas"},
		"negative replicas":                  {func(dc *dorisv1.DorisCluster) { dc.Spec.BeSpec.Replicas = new(int32(-1)) }, "Refusal spec.beSpec.replicas"},
		"fewer frontends than none":          {func(dc *dorisv1.DorisCluster) { dc.Spec.FeSpec.Replicas = new(int32(-3)) }, "Refusal spec.feSpec.replicas"},
		"one frontend and nothing else said": {func(dc *dorisv1.DorisCluster) { dc.Spec.FeSpec.Replicas = new(int32(1)) }, ""},
		"nobody may elect":                   {func(dc *dorisv1.DorisCluster) { dc.Spec.FeSpec.ElectionNumber = new(int32(0)) }, "Refusal spec.feSpec.electionNumber"},
		"more electors than frontends":       {func(dc *dorisv1.DorisCluster) { dc.Spec.FeSpec.ElectionNumber = new(int32(5)) }, "Warning spec.feSpec.electionNumber"},
		"no image":                           {func(dc *dorisv1.DorisCluster) { dc.Spec.BeSpec.Image = "" }, "Refusal spec.beSpec.image"},
		"the built-in account, in any case":  {func(dc *dorisv1.DorisCluster) { dc.Spec.AdminUser = &dorisv1.AdminUser{Name: "ADMIN"} }, "Refusal spec.adminUser.name"},
		"a Secret wins over it": {func(dc *dorisv1.DorisCluster) {
			dc.Spec.AdminUser, dc.Spec.AuthSecret = &dorisv1.AdminUser{Name: "admin"}, "s"
		}, ""},
		"password in plain text":          {func(dc *dorisv1.DorisCluster) { dc.Spec.AdminUser = &dorisv1.AdminUser{Password: "x"} }, "Warning spec.adminUser"},
		"Service type that leads nowhere": {func(dc *dorisv1.DorisCluster) { dc.Spec.FeSpec.Service = &dorisv1.ExportService{Type: "ExternalName"} }, "Refusal spec.feSpec.service.type"},
		"one node port for two Services": {func(dc *dorisv1.DorisCluster) {
			dc.Spec.FeSpec.Service, dc.Spec.BeSpec.Service = nodePort(30001), nodePort(30001)
		}, "Refusal spec.beSpec.service.servicePorts[0].nodePort"},
		"node port left to Kubernetes, twice": {func(dc *dorisv1.DorisCluster) {
			dc.Spec.FeSpec.Service, dc.Spec.BeSpec.Service = nodePort(0), nodePort(0)
		}, ""},
		"node port that is no port":         {func(dc *dorisv1.DorisCluster) { dc.Spec.FeSpec.Service = nodePort(70000) }, "Refusal spec.feSpec.service.servicePorts[0].nodePort"},
		"node port outside the usual range": {func(dc *dorisv1.DorisCluster) { dc.Spec.FeSpec.Service = nodePort(8030) }, "Warning spec.feSpec.service.servicePorts[0].nodePort"},
		"volume without a name":             {volumes(dorisv1.PersistentVolume{MountPath: "/d", PersistentVolumeClaimSpec: storage}), "Refusal spec.beSpec.persistentVolumes[0].name"},
		"volume with an illegal name":       {volumes(dorisv1.PersistentVolume{Name: "A_b", MountPath: "/d", PersistentVolumeClaimSpec: storage}), "Refusal spec.beSpec.persistentVolumes[0].name"},
		"two volumes of one name":           {volumes(dorisv1.PersistentVolume{Name: "d", MountPath: "/d", PersistentVolumeClaimSpec: storage}, dorisv1.PersistentVolume{Name: "d", MountPath: "/e", PersistentVolumeClaimSpec: storage}), "Refusal spec.beSpec.persistentVolumes[1].name"},
		"volume without a size":             {volumes(dorisv1.PersistentVolume{Name: "d", MountPath: "/d"}), "Refusal spec.beSpec.persistentVolumes[0].persistentVolumeClaimSpec.resources.requests.storage"},
		"volume at a relative path":         {volumes(dorisv1.PersistentVolume{Name: "d", MountPath: "d", PersistentVolumeClaimSpec: storage}), "Refusal spec.beSpec.persistentVolumes[0].mountPath"},
		"volume over the whole container":   {volumes(dorisv1.PersistentVolume{Name: "d", MountPath: "//", PersistentVolumeClaimSpec: storage}), "Refusal spec.beSpec.persistentVolumes[0].mountPath"},
		"template without a path":           {volumes(dorisv1.PersistentVolume{Name: "d", PersistentVolumeClaimSpec: storage}), ""},
		"two templates":                     {volumes(dorisv1.PersistentVolume{Name: "d", PersistentVolumeClaimSpec: storage}, dorisv1.PersistentVolume{Name: "e", PersistentVolumeClaimSpec: storage}), "Warning spec.beSpec.persistentVolumes[0]"},
		"Secret without a name":             {func(dc *dorisv1.DorisCluster) { dc.Spec.FeSpec.Secrets = []dorisv1.Secret{{MountPath: "/s"}} }, "Refusal spec.feSpec.secrets[0]"},
		"ConfigMap at a path with a colon": {func(dc *dorisv1.DorisCluster) {
			dc.Spec.FeSpec.ConfigMapInfo.ConfigMaps = []dorisv1.MountConfigMapInfo{{ConfigMapName: "c", MountPath: "/a:b"}}
		}, "Refusal spec.feSpec.configMapInfo.configMaps[0].mountPath"},
		"shared claim without a name": {func(dc *dorisv1.DorisCluster) {
			dc.Spec.SharedPersistentVolumeClaims = []dorisv1.SharedPersistentVolumeClaim{{MountPath: "/s"}}
		}, "Refusal spec.sharedPersistentVolumeClaims[0].persistentVolumeClaimName"},
		"shared claim at a relative path": {func(dc *dorisv1.DorisCluster) {
			dc.Spec.SharedPersistentVolumeClaims = []dorisv1.SharedPersistentVolumeClaim{{MountPath: "s", PersistentVolumeClaimName: "s"}}
		}, "Refusal spec.sharedPersistentVolumeClaims[0].mountPath"},
		"compute nodes and brokers":      {func(dc *dorisv1.DorisCluster) { more(dc) }, ""},
		"compute nodes without an image": {func(dc *dorisv1.DorisCluster) { dc.Spec.CnSpec = &dorisv1.CnSpec{} }, "Refusal spec.cnSpec.image"},
		"brokers without an image":       {func(dc *dorisv1.DorisCluster) { dc.Spec.BrokerSpec = &dorisv1.BrokerSpec{} }, "Refusal spec.brokerSpec.image"},
		"compute nodes without frontends": {func(dc *dorisv1.DorisCluster) {
			more(dc)
			dc.Spec.FeSpec, dc.Spec.BeSpec, dc.Spec.BrokerSpec = nil, nil, nil
		}, "Refusal spec.feSpec"},
		"brokers without frontends": {func(dc *dorisv1.DorisCluster) {
			more(dc)
			dc.Spec.FeSpec, dc.Spec.BeSpec, dc.Spec.CnSpec = nil, nil, nil
		}, "Refusal spec.feSpec"},
		"compute nodes of frontends elsewhere": {func(dc *dorisv1.DorisCluster) {
			more(dc)
			dc.Spec.FeSpec, dc.Spec.BeSpec, dc.Spec.BrokerSpec, dc.Spec.CnSpec.FeAddress = nil, nil, nil, address
		}, ""},
		"no frontend runs for compute nodes": {func(dc *dorisv1.DorisCluster) {
			more(dc)
			dc.Spec.FeSpec.Replicas, dc.Spec.BeSpec, dc.Spec.BrokerSpec = new(int32(0)), nil, nil
		}, "Refusal spec.feSpec.replicas"},
		"the whole cluster is stopped, brokers too": {func(dc *dorisv1.DorisCluster) {
			more(dc)
			for _, c := range rendered {
				specOf(dc, c).Replicas = new(int32(0))
			}
		}, ""},
		"a Service for clients of brokers": {func(dc *dorisv1.DorisCluster) {
			more(dc)
			dc.Spec.BrokerSpec.Service = &dorisv1.ExportService{Type: "ExternalName", LoadBalancerIP: "10.0.0.1"}
		}, "Warning spec.brokerSpec.service"},
		"CPU limit to tell compute nodes, and none is there": {func(dc *dorisv1.DorisCluster) { more(dc); dc.Spec.CnSpec.AutoResolveLimitCPU = true }, "Warning spec.cnSpec.autoResolveLimitCPU"},
		"the way in which compute nodes leave": {func(dc *dorisv1.DorisCluster) {
			more(dc)
			dc.Spec.CnSpec.ScaleInPolicy = dorisv1.ScaleInDrop
		}, ""},
		"file of brokers by its key": {func(dc *dorisv1.DorisCluster) { more(dc); dc.Spec.BrokerSpec.ConfigMapInfo.ResolveKey = brokerConfKey }, ""},
		"a roll that is to give up at once": {func(dc *dorisv1.DorisCluster) {
			dc.Spec.Rollout = &dorisv1.Rollout{ProgressDeadlineSeconds: new(int32(9))}
		}, "Refusal spec.rollout.progressDeadlineSeconds"},
		"a roll that goes back when it fails": {func(dc *dorisv1.DorisCluster) {
			dc.Spec.Rollout = &dorisv1.Rollout{OnFailure: dorisv1.OnFailureRollback, ProgressDeadlineSeconds: new(int32(10))}
		}, ""},
		"restart on a changed file":       {func(dc *dorisv1.DorisCluster) { dc.Spec.EnableRestartWhenConfigChange = true }, ""},
		"configuration updates by hand":   {func(dc *dorisv1.DorisCluster) { dc.Spec.ConfigUpdatePolicy = dorisv1.ConfigUpdateManual }, ""},
		"automatic configuration updates": {func(dc *dorisv1.DorisCluster) { dc.Spec.ConfigUpdatePolicy = dorisv1.ConfigUpdateAuto }, ""},
		"kept run-time settings": {func(dc *dorisv1.DorisCluster) {
			dc.Spec.RuntimeConfigPersistence = &dorisv1.RuntimeConfigPersistence{Enabled: new(true)}
		}, ""},
		"run-time settings that are not kept": {func(dc *dorisv1.DorisCluster) {
			dc.Spec.RuntimeConfigPersistence = &dorisv1.RuntimeConfigPersistence{Enabled: new(false)}
		}, ""},
		"resource claims":                {func(dc *dorisv1.DorisCluster) { dc.Spec.FeSpec.Claims = []corev1.ResourceClaim{{Name: "gpu"}} }, "Unsupported spec.feSpec.claims"},
		"key of a file that is not read": {func(dc *dorisv1.DorisCluster) { dc.Spec.BeSpec.ConfigMapInfo.ResolveKey = "fe.conf" }, "Warning spec.beSpec.configMapInfo.resolveKey"},
		"address of a balancer that is none": {func(dc *dorisv1.DorisCluster) {
			dc.Spec.FeSpec.Service = &dorisv1.ExportService{LoadBalancerIP: "10.0.0.1"}
		}, "Warning spec.feSpec.service.loadBalancerIP"},
		"CPU limit to tell, and none is there": {func(dc *dorisv1.DorisCluster) { dc.Spec.BeSpec.AutoResolveLimitCPU = true }, "Warning spec.beSpec.autoResolveLimitCPU"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dc := valid()
			test.change(dc)
			findings := Validate(dc)
			if test.want == "" {
				if len(findings) > 0 {
					t.Errorf("found %v", findings)
				}
				return
			}
			if len(findings) != 1 || string(findings[0].Severity)+" "+findings[0].Field != test.want {
				t.Fatalf("found %+v, want one: %s", findings, test.want)
			}
			if f := findings[0]; f.Reason == "" || !strings.Contains(f.Message, ":") {
				t.Errorf("message %q does not say the reason and the way out", f.Message)
			}
		})
	}
}

// more adds compute nodes and brokers.
func more(dc *dorisv1.DorisCluster) {
	dc.Spec.CnSpec = &dorisv1.CnSpec{BaseSpec: dorisv1.BaseSpec{Image: "apache/doris:be-2.1.8"}}
	dc.Spec.BrokerSpec = &dorisv1.BrokerSpec{BaseSpec: dorisv1.BaseSpec{Image: "apache/doris:broker-2.1.8"}}
}

func nodePort(port int32) *dorisv1.ExportService {
	return &dorisv1.ExportService{Type: corev1.ServiceTypeNodePort, ServicePorts: []dorisv1.ServicePort{{NodePort: port, TargetPort: 9030}}}
}

func volumes(list ...dorisv1.PersistentVolume) func(*dorisv1.DorisCluster) {
	return func(dc *dorisv1.DorisCluster) { dc.Spec.BeSpec.PersistentVolumes = list }
}

func TestRulesAreNamedOnce(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, r := range rules {
		if r.name == "" || seen[r.name] {
			t.Errorf("rule %q has no name of its own", r.name)
		}
		seen[r.name] = true
	}
	if (plan.Plan{Findings: Validate(valid())}).Refused() != nil {
		t.Error("the spec that the table starts from is refused")
	}
}
