package doris

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
)

// Environment variables that the images read.
const (
	envFrontendAddress = "ENV_FE_ADDR"
	envQueryPort       = "FE_QUERY_PORT"

	defaultUser = "root"
)

// env returns the variables that the operator sets, in a fixed order. The
// management account is not among them: the images read it from the files of the
// mounted Secret, which win over USER.
func (c component) env() []corev1.EnvVar {
	vars := []corev1.EnvVar{
		fromField("POD_NAME", "metadata.name"),
		fromField("POD_IP", "status.podIP"),
		fromField("HOST_IP", "status.hostIP"),
		fromField("POD_NAMESPACE", "metadata.namespace"),
		{Name: "CONFIGMAP_MOUNT_PATH", Value: defaultMountPath},
		{Name: "DNS_READY_TIMEOUT", Value: "120"},
		{Name: "DNS_READY_INTERVAL", Value: "2"},
		{Name: "USER", Value: defaultUser},
		{Name: "DORIS_ROOT", Value: rootPath},
	}
	vars = append(vars, c.kerberosEnv()...)
	vars = append(vars, c.backendEnv()...)
	address, port := c.frontends()
	vars = append(vars,
		corev1.EnvVar{Name: envFrontendAddress, Value: address},
		corev1.EnvVar{Name: envQueryPort, Value: strconv.Itoa(int(port))},
	)
	if c.fe != nil {
		vars = append(vars, corev1.EnvVar{Name: "ELECT_NUMBER", Value: strconv.Itoa(int(electionNumberOf(c.fe)))})
	}
	return vars
}

// frontends returns where the component finds the frontends.
func (c component) frontends() (address string, queryPort int32) {
	if external, port := externalFrontends(c.spec); len(external) > 0 {
		return strings.Join(external, ","), port
	}
	return AccessServiceName(c.dc.Name, dorisv1.ComponentFE), c.feQueryPort
}

func (c component) kerberosEnv() []corev1.EnvVar {
	kerberos := c.dc.Spec.KerberosInfo
	if kerberos == nil {
		return nil
	}
	return []corev1.EnvVar{
		{Name: "KRB5_MOUNT_PATH", Value: krb5MountPath},
		{Name: "KRB5_CONFIG", Value: c.krb5Conf},
		{Name: "KEYTAB_MOUNT_PATH", Value: keytabMountPath},
		{Name: "KEYTAB_FINAL_USED_PATH", Value: keytabPathOf(kerberos)},
	}
}

func keytabPathOf(k *dorisv1.KerberosInfo) string {
	if k.KeytabPath == "" {
		return defaultKeytabPath
	}
	return k.KeytabPath
}

func (c component) backendEnv() []corev1.EnvVar {
	var vars []corev1.EnvVar
	skips, resolves := c.preparation()
	if skips {
		vars = append(vars, corev1.EnvVar{Name: "SKIP_CHECK_ULIMIT", Value: "true"})
	}
	if limit, found := c.spec.Limits[corev1.ResourceCPU]; found && resolves {
		vars = append(vars, corev1.EnvVar{Name: "BE_CPU_LIMIT", Value: limit.String()})
	}
	if c.be != nil && c.be.EnableWorkloadGroup {
		vars = append(vars, corev1.EnvVar{Name: "ENABLE_WORKLOAD_GROUP", Value: "true"})
	}
	if c.cn != nil {
		vars = append(vars, corev1.EnvVar{Name: "COMPONENT_TYPE", Value: "COMPUTE"})
	}
	return vars
}

func fromField(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
}
