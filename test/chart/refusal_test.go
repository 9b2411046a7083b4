package chart

import (
	"strings"
	"testing"
)

// What the schema refuses: the error names the value and what is wrong with it.
func TestSchemaRefusals(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ values, want string }{
		"unknown value":                       {"replica: 2", "additional properties 'replica' not allowed"},
		"unknown value in a group":            {"image: {name: x}", "at '/image': additional properties 'name' not allowed"},
		"text for a number":                   {`replicas: "2"`, "at '/replicas': got string, want integer"},
		"negative replicas":                   {"replicas: -1", "at '/replicas': minimum: got -1, want 0"},
		"a digest that is none":               {"image: {digest: latest}", "at '/image/digest': 'latest' does not match pattern"},
		"a tag with a digest in it":           {`image: {tag: "v1@sha256:00"}`, "at '/image/tag'"},
		"another pull policy":                 {"image: {pullPolicy: Sometimes}", "at '/image/pullPolicy': value must be one of 'Always', 'IfNotPresent', 'Never'"},
		"another log level":                   {"logging: {level: loud}", "at '/logging/level': value must be one of '', 'debug', 'info', 'warn', 'error'"},
		"another strategy":                    {"strategy: {type: BlueGreen}", "at '/strategy/type': value must be one of 'RollingUpdate', 'Recreate'"},
		"an unknown system":                   {"systems: [oracle]", "at '/systems/0'"},
		"no systems":                          {"systems: []", "at '/systems': minItems: got 0, want 1"},
		"a namespace that cannot be":          {"watchNamespaces: [Sales_1]", "at '/watchNamespaces/0': 'Sales_1' does not match pattern"},
		"namespaces as text":                  {"watchNamespaces: a,b", "at '/watchNamespaces': got string, want array"},
		"a namespace twice":                   {"watchNamespaces: [a, a]", "at '/watchNamespaces'"},
		"restartOnConfigChange of other text": {"operatorPod: {restartOnConfigChange: always}", "at '/operatorPod/restartOnConfigChange': value must be one of false, true, 'data'"},
		"restartOnConfigChange true as text":  {`operatorPod: {restartOnConfigChange: "true"}`, "at '/operatorPod/restartOnConfigChange'"},
		"an unknown option":                   {"defaultConfiguration: {options: {colour: red}}", "at '/defaultConfiguration/options': additional properties 'colour' not allowed"},
		"an option of the wrong type":         {"defaultConfiguration: {options: {workers: many}}", "at '/defaultConfiguration/options/workers': got string, want integer"},
		"a password for the proxy":            {"dialVia: socks5://me:hunter2@proxy:1080", "at '/dialVia'"},
		"a password in an option":             {`defaultConfiguration: {options: {dialVia: "socks5://me:hunter2@proxy:1080"}}`, "at '/defaultConfiguration/options/dialVia'"},
		"an annotation that is no text":       {"operatorDeployment: {annotations: {a: true}}", "at '/operatorDeployment/annotations/a': got boolean, want string"},
		"an environment variable unnamed":     {"operatorPod: {env: [{value: x}]}", "at '/operatorPod/env/0': missing property 'name'"},
		"a probe that says where":             {"operatorHealth: {livenessProbe: {httpGet: {path: /}}}", "additional properties 'httpGet' not allowed"},
		"a port that cannot be":               {"metrics: {port: 0}", "at '/metrics/port': minimum: got 0, want 1"},
		"a duration that is none":             {"metrics: {serviceMonitor: {interval: often}}", "at '/metrics/serviceMonitor/interval'"},
		"an alert that there is not":          {"metrics: {prometheusRule: {disabled: [FairleadGone]}}", "at '/metrics/prometheusRule/disabled/0'"},
		"an option that no namespace has":     {"defaultConfiguration: {options: {perNamespace: {a: {workers: 3}}}}", "at '/defaultConfiguration/options/perNamespace/a': additional properties 'workers' not allowed"},
		"a pause without a unit":              {"defaultConfiguration: {options: {rollPause: 30}}", "at '/defaultConfiguration/options/rollPause': got number, want string"},
		"a container without an image":        {"operatorPod: {sidecarContainers: [{name: x}]}", "at '/operatorPod/sidecarContainers/0': missing property 'image'"},
		"an init container without an image":  {"operatorPod: {initContainers: [{name: x}]}", "at '/operatorPod/initContainers/0': missing property 'image'"},
		"a group that is taken away":          {"metrics: null", "missing property 'metrics'"},
		"a switch that is taken away":         {"leaderElection: {enabled: null}", "at '/leaderElection': missing property 'enabled'"},
		"systems that are taken away":         {"systems: null", "missing property 'systems'"},
		"a misspelt toleration":               {"operatorPod: {tolerations: [{key: a, operation: Exists}]}", "additional properties 'operation' not allowed"},
		"a toleration of an unknown effect":   {"operatorPod: {tolerations: [{key: a, effect: Noschedule}]}", "at '/operatorPod/tolerations/0/effect': value must be one of"},
		"an amount of memory that is none":    {"operatorPod: {resources: {limits: {memory: 512MB}}}", "at '/operatorPod/resources/limits/memory': '512MB' does not match pattern"},
		"a misspelt security setting":         {"podSecurityContext: {runAsNonroot: true}", "at '/podSecurityContext': additional properties 'runAsNonroot' not allowed"},
		"a misspelt capability":               {"operatorSecurityContext: {capabilities: {dropp: [ALL]}}", "additional properties 'dropp' not allowed"},
		"a misspelt peer":                     {"networkPolicy: {metricsFrom: [{podselector: {}}]}", "at '/networkPolicy/metricsFrom/0': additional properties 'podselector' not allowed"},
		"a misspelt mount":                    {"operatorPod: {volumeMounts: [{name: v, mountPath: /v, readonly: true}]}", "additional properties 'readonly' not allowed"},
		"a variable that is a number":         {"operatorPod: {env: [{name: A, value: 1}]}", "at '/operatorPod/env/0/value': got number, want string"},
		"a misspelt DNS setting":              {"operatorPod: {dnsConfig: {nameserver: [1.1.1.1]}}", "additional properties 'nameserver' not allowed"},
		"a misspelt affinity":                 {"operatorPod: {affinity: {nodeafinity: {}}}", "additional properties 'nodeafinity' not allowed"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused(t, test.values, test.want)
		})
	}
}

// What contradicts itself is refused with the names of both.
func TestContradictionsAreRefused(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ values, want string }{
		"two replicas without election":         {"replicas: 2\nleaderElection: {enabled: false}", "replicas is 2 and leaderElection.enabled is false"},
		"a rolling update without election":     {"strategy: {type: RollingUpdate}\nleaderElection: {enabled: false}", "strategy.type is RollingUpdate and leaderElection.enabled is false"},
		"Recreate with settings of the other":   {"strategy: {type: Recreate, rollingUpdate: {maxSurge: 1}}", "strategy.type is Recreate, which has no strategy.rollingUpdate"},
		"a budget that lets none go":            {"podDisruptionBudget: {create: true, minAvailable: 1, maxUnavailable: ''}", "podDisruptionBudget lets none of replicas: 1 go"},
		"a budget of zero":                      {"podDisruptionBudget: {create: true, maxUnavailable: 0}", "podDisruptionBudget lets none"},
		"a budget that says both":               {"replicas: 3\npodDisruptionBudget: {create: true, minAvailable: 1}", "exclude each other"},
		"a budget that says nothing":            {"podDisruptionBudget: {create: true, maxUnavailable: ''}", "podDisruptionBudget.create needs"},
		"a monitor of nothing":                  {"metrics: {enabled: false, serviceMonitor: {create: true}}", "metrics.serviceMonitor.create needs metrics.enabled and metrics.service.create"},
		"alerts about nothing":                  {"metrics: {enabled: false, prometheusRule: {create: true}}", "metrics.prometheusRule.create needs metrics.enabled"},
		"one port for two":                      {"metrics: {port: 8081}", "metrics.port and operatorHealth.port are both 8081"},
		"an option that belongs to a value":     {"defaultConfiguration: {options: {leaderElect: true}}", "defaultConfiguration.options.leaderElect: other objects of the chart depend on it, so it is set by leaderElection.enabled alone"},
		"namespaces in the file":                {"defaultConfiguration: {options: {namespaces: [a]}}", "set by watchNamespaces alone"},
		"a log level that goes nowhere":         {"logging: {level: debug}\ndefaultConfiguration: {create: false}", "logging.level is written into the ConfigMap that defaultConfiguration.create: false leaves out: write logLevel into your own"},
		"workers that are not appended":         {"workers: 3\ndefaultConfiguration: {append: false}", "workers is not used with defaultConfiguration.append: false"},
		"one option by two values":              {"logging: {level: debug}\ndefaultConfiguration: {options: {logLevel: info}}", "logging.level and defaultConfiguration.options.logLevel differ"},
		"two ConfigMaps":                        {"defaultConfiguration: {existingConfigMap: mine}", "set create to false"},
		"options for a ConfigMap of the user's": {"defaultConfiguration: {create: false, options: {workers: 1}}", "defaultConfiguration.options are not used with defaultConfiguration.create: false"},
		"a pause that is too long":              {"defaultConfiguration: {options: {rollPause: 99h}}", "defaultConfiguration.options.rollPause is 99h; write 1s to 1h"},
		"a pause that is a little too long":     {"defaultConfiguration: {options: {rollPause: 1h0m0.5s}}", "defaultConfiguration.options.rollPause is 1h0m0.5s; write 1s to 1h"},
		"a pause that is too short":             {"defaultConfiguration: {options: {rollPause: 999ms}}", "defaultConfiguration.options.rollPause is 999ms; write 1s to 1h"},
		"an interval of a namespace too short":  {"defaultConfiguration: {options: {perNamespace: {lab: {databaseInterval: 59s}}}}", "defaultConfiguration.options.perNamespace.lab.databaseInterval is 59s; write 1m to 1h"},
		"two checksums":                         {"operatorPod: {restartOnConfigChange: true, annotations: {checksum/config: x}}", "operatorPod.annotations has checksum/config"},
		"a variable that a flag overrides":      {"operatorPod: {env: [{name: FAIRLEAD_NAMESPACES, value: a}]}", "operatorPod.env has FAIRLEAD_NAMESPACES, which would not be used: it is set by watchNamespaces"},
		"a variable of the chart's":             {"operatorPod: {env: [{name: POD_NAME, value: a}]}", "which the chart sets itself"},
		"a budget in percent that lets none go": {"replicas: 3\npodDisruptionBudget: {create: true, minAvailable: 67%, maxUnavailable: ''}", "podDisruptionBudget lets none of replicas: 3 go"},
		"a budget of a share of one":            {"podDisruptionBudget: {create: true, minAvailable: 50%, maxUnavailable: ''}", "podDisruptionBudget lets none of replicas: 1 go"},
		"a variable beside its value":           {"logging: {level: debug}\noperatorPod: {env: [{name: FAIRLEAD_LOG_LEVEL, value: info}]}", "operatorPod.env has FAIRLEAD_LOG_LEVEL, by which logging.level would not be used"},
		"a variable beside its option":          {"defaultConfiguration: {options: {rollPause: 30s}}\noperatorPod: {env: [{name: FAIRLEAD_ROLL_PAUSE, value: 1m}]}", "operatorPod.env has FAIRLEAD_ROLL_PAUSE, by which defaultConfiguration.options.rollPause would not be used"},
		"a variable twice":                      {"operatorPod: {env: [{name: A, value: a}, {name: A, value: b}]}", "operatorPod.env has A twice"},
		"two containers of one name":            {"operatorPod: {sidecarContainers: [{name: x, image: i}], initContainers: [{name: x, image: i}]}", "has x twice"},
		"two volumes of one name":               {"operatorPod: {volumes: [{name: v, emptyDir: {}}, {name: v, emptyDir: {}}]}", "operatorPod.volumes has v twice"},
		"two mounts at one place":               {"operatorPod: {volumes: [{name: v, emptyDir: {}}], volumeMounts: [{name: v, mountPath: /a}, {name: v, mountPath: /a}]}", "operatorPod.volumeMounts has /a twice"},
		"a mount over the configuration":        {"operatorPod: {volumes: [{name: v, emptyDir: {}}], volumeMounts: [{name: v, mountPath: /etc/fairlead/}]}", "the path /etc/fairlead, at which the chart mounts the configuration"},
		"a mount without its volume":            {"operatorPod: {volumeMounts: [{name: v, mountPath: /v}]}", "operatorPod.volumeMounts has v, of which there is no volume"},
		"a second container named operator":     {"operatorPod: {sidecarContainers: [{name: operator, image: x}]}", "a further container named operator"},
		"a second volume named config":          {"operatorPod: {volumes: [{name: config, emptyDir: {}}]}", "operatorPod.volumes has one named config"},
		"a label by which Pods are found":       {"operatorPod: {labels: {app.kubernetes.io/name: x}}", "may not have app.kubernetes.io/name"},
		"root that may not be root":             {"podSecurityContext: {runAsUser: 0}", "podSecurityContext.runAsUser is 0 and podSecurityContext.runAsNonRoot is true"},
		"values of the doris-operator chart":    {"dorisOperator: {image: {tag: x}}", "dorisOperator is a value of the doris-operator chart"},
		"a name that Kubernetes does not take":  {"fullnameOverride: Fair.Lead", `the objects would be named "Fair.Lead"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused(t, test.values, test.want)
		})
	}
}

func refused(t *testing.T, values, want string) {
	t.Helper()
	_, err := render(t, load(t), values, install("fairlead", "fairlead-system"))
	if err == nil {
		t.Fatalf("taken, want a refusal with %q", want)
	}
	if !strings.Contains(err.Error(), want) {
		t.Fatalf("refused with:\n%v\nwant:\n%s", err, want)
	}
	if strings.Contains(err.Error(), "hunter2") && !strings.Contains(values, "hunter2") {
		t.Fatal("the error shows a password that it was not given")
	}
}

// Combinations that look alike and are right.
func TestWhatIsNoContradictionIsTaken(t *testing.T) {
	t.Parallel()
	for name, values := range map[string]string{
		"one replica without election is recreated":   "leaderElection: {enabled: false}",
		"Recreate with election":                      "strategy: {type: Recreate}",
		"the same option by two values":               "logging: {level: debug}\ndefaultConfiguration: {options: {logLevel: debug}}",
		"the user's own checksum without the toggle":  "operatorPod: {annotations: {checksum/config: mine}}",
		"a checksum for a ConfigMap of the user's":    "defaultConfiguration: {create: false, existingConfigMap: mine}\noperatorPod: {restartOnConfigChange: true, annotations: {checksum/config: mine}}",
		"no replicas at all":                          "replicas: 0\npodDisruptionBudget: {create: true}",
		"values of a parent chart":                    "global: {storageClass: x}",
		"a budget in percent":                         "replicas: 4\npodDisruptionBudget: {create: true, maxUnavailable: 25%}",
		"no security contexts, as OpenShift wants it": "podSecurityContext: null\noperatorSecurityContext: null",
		"empty lines of a file of values":             "image: {tag: }\nnameOverride:\noperatorPod: {labels: , annotations: , env: , volumes: , resources: }\ncommonLabels:",
		"amounts in all their forms":                  "operatorPod: {resources: {requests: {cpu: 0.5, memory: 64Mi, ephemeral-storage: 1e9}, limits: {cpu: 1500m, memory: 1.5Gi, example.com/gpu: 1}}}",
		"durations at their bounds":                   "defaultConfiguration: {options: {rollPause: 1000ms, databaseInterval: 60m, perNamespace: {lab: {rollPause: 0.5h}, shop: {}}}}",
		"a budget of half of three":                   "replicas: 3\npodDisruptionBudget: {create: true, minAvailable: 50%, maxUnavailable: ''}",
		"a variable for an option that has no value":  "operatorPod: {env: [{name: FAIRLEAD_LOG_LEVEL, value: info}]}",
		"a mount of the chart's own volume":           "operatorPod: {volumeMounts: [{name: config, mountPath: /elsewhere}]}",
		"a container that is meant by kubectl logs":   "operatorPod: {annotations: {kubectl.kubernetes.io/default-container: beside}, sidecarContainers: [{name: beside, image: x}]}",
		"a budget that one of three may go by":        "replicas: 3\npodDisruptionBudget: {create: true, minAvailable: 2, maxUnavailable: ''}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rendered(t, values)
		})
	}
}
