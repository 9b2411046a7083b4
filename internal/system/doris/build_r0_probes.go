package doris

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
)

// Probes of revision 0. They ask for the HTTP status alone.

const healthPathR0 = "/api/health"

func (c component) startupProbeR0() *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:     c.isAlive(),
		PeriodSeconds:    probePeriod,
		FailureThreshold: max(c.spec.StartTimeout, minimumStartSeconds) / probePeriod,
	}
}

func (c component) readinessProbeR0() *corev1.Probe {
	probe := c.readinessProbe()
	probe.ProbeHandler = c.healthyR0()
	return probe
}

// healthyR0 asks the component over HTTP, by name where members have names, and
// over TLS where its file turns that on.
func (c component) healthyR0() corev1.ProbeHandler {
	if c.kind == dorisv1.ComponentBroker {
		return c.isAlive()
	}
	if !c.fqdn && c.tls == nil {
		return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: healthPathR0, Port: intstr.FromInt32(c.health),
		}}
	}
	resolve, host := "", "localhost"
	if c.fqdn {
		resolve = `host=$(hostname -f); (getent hosts "$host" >/dev/null 2>&1 || nslookup "$host" >/dev/null 2>&1) && `
		host = "$host"
	}
	scheme, options := "http", ""
	if c.tls != nil {
		scheme = "https"
		options = fmt.Sprintf(" --cacert %s --cert %s --key %s", c.tls.CA, c.tls.Cert, c.tls.Key)
	}
	script := fmt.Sprintf("%scurl --fail --silent --output /dev/null%s %s://%s:%d%s", resolve, options, scheme, host, c.health, healthPathR0)
	return corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"bash", "-c", script}}}
}
