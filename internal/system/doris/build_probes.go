package doris

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	dorisv1 "github.com/fairlead-dev/fairlead/api/doris/v1"
)

const probePeriod = 5

// startupProbe gives the process its time to listen.
func (c component) startupProbe() *corev1.Probe {
	seconds := max(c.spec.StartTimeout, minimumStartSeconds)
	return &corev1.Probe{
		ProbeHandler:     c.isAlive(),
		PeriodSeconds:    probePeriod,
		FailureThreshold: (seconds + probePeriod - 1) / probePeriod,
	}
}

// livenessProbe restarts a process that no longer listens.
func (c component) livenessProbe() *corev1.Probe {
	timeout := c.spec.LiveTimeout
	if timeout <= 0 {
		timeout = defaultLiveSeconds
	}
	return &corev1.Probe{
		ProbeHandler:        c.isAlive(),
		InitialDelaySeconds: 80,
		PeriodSeconds:       probePeriod,
		FailureThreshold:    3,
		TimeoutSeconds:      timeout,
	}
}

// brokerAlive is the script of the images that tells whether a broker listens on
// the port that it is given.
const brokerAlive = rootPath + "/broker_is_alive.sh"

// isAlive tells whether the process is up.
func (c component) isAlive() corev1.ProbeHandler {
	if c.broker != nil {
		return corev1.ProbeHandler{Exec: &corev1.ExecAction{
			Command: []string{brokerAlive, strconv.Itoa(int(c.alive))},
		}}
	}
	return c.listens()
}

func (c component) listens() corev1.ProbeHandler {
	return corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(c.alive)}}
}

// readinessProbe asks the process itself whether it serves, and reads the answer:
// newer backends say "not available" with HTTP status 200.
func (c component) readinessProbe() *corev1.Probe {
	probe := &corev1.Probe{
		ProbeHandler:   c.serves(),
		TimeoutSeconds: defaultReadyTimeout, FailureThreshold: defaultReadyFailure, PeriodSeconds: defaultReadyPeriod,
	}
	if p := c.spec.ReadinessProbePolicy; p != nil {
		override(&probe.TimeoutSeconds, p.TimeoutSeconds)
		override(&probe.FailureThreshold, p.FailureThreshold)
		override(&probe.PeriodSeconds, p.PeriodSeconds)
	}
	return probe
}

// serves tells whether the process serves. A broker that listens does.
func (c component) serves() corev1.ProbeHandler {
	if c.broker != nil {
		return c.isAlive()
	}
	return corev1.ProbeHandler{Exec: &corev1.ExecAction{
		Command: []string{"bash", "-c", readinessScript(c.kind, c.health, c.fqdn, c.tls)},
	}}
}

func override(value *int32, by int32) {
	if by > 0 {
		*value = by
	}
}

// What the health answer of a component holds when it serves, as regular
// expressions of bash.
const (
	frontendHealthy = `\"code\"[[:space:]]*:[[:space:]]*0[^0-9]`
	backendHealthy  = `\"status\"[[:space:]]*:[[:space:]]*\"OK\"`
)

// readinessScript returns a script that needs bash and curl alone.
func readinessScript(kind dorisv1.ComponentType, port int32, fqdn bool, tls *TLSFiles) string {
	lines := []string{
		`host=$POD_IP; case $host in *:*) host="[$host]";; esac`,
	}
	scheme, options := "http", ""
	if tls != nil {
		scheme = "https"
		options = fmt.Sprintf(" --cacert %s --cert %s --key %s", quote(tls.CA), quote(tls.Cert), quote(tls.Key))
		lines = []string{"host=localhost"} // certificates seldom name an address
	}
	if fqdn {
		lines = []string{
			`host=$(hostname -f)`,
			`getent hosts "$host" >/dev/null 2>&1 || nslookup "$host" >/dev/null 2>&1 || { echo "not ready: $host does not resolve" >&2; exit 1; }`,
		}
	}
	healthy := backendHealthy
	if kind == dorisv1.ComponentFE {
		healthy = frontendHealthy
	}
	lines = append(lines,
		fmt.Sprintf(`body=$(curl --fail --silent --show-error%s "%s://$host:%d/api/health") || exit 1`, options, scheme, port),
		fmt.Sprintf(`[[ $body =~ %s ]] || { echo "not ready: $body" >&2; exit 1; }`, healthy),
	)
	return strings.Join(lines, "\n")
}

// quote writes a text so that bash takes it as it is.
func quote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
