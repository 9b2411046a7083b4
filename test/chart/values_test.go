package chart

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

func operatorContainer(t testing.TB, r *release) corev1.Container {
	t.Helper()
	for _, c := range get[appsv1.Deployment](t, r, "Deployment", "").Spec.Template.Spec.Containers {
		if c.Name == "operator" {
			return c
		}
	}
	t.Fatal("no container named operator")
	return corev1.Container{}
}

// Every value of values.yaml does what it says: it changes the named template,
// and the text is there. A value without a case fails.
func TestEveryValueHasItsEffect(t *testing.T) {
	t.Parallel()
	const deployment, config, roles = "deployment.yaml", "configmap.yaml", "rbac-operator.yaml"
	tests := map[string]struct{ values, file, want string }{
		"nameOverride":                              {"nameOverride: lead", deployment, "app.kubernetes.io/name: lead"},
		"fullnameOverride":                          {"fullnameOverride: lead", deployment, "name: lead\n"},
		"commonLabels":                              {"commonLabels: {a: b}", "service.yaml", "a: b"},
		"image.repository":                          {"image: {repository: r/x}", deployment, `image: "r/x:dev"`},
		"image.tag":                                 {"image: {tag: v2}", deployment, `image: "fairlead-dev/fairlead:v2"`},
		"image.digest":                              {"image: {tag: v2, digest: 'sha256:" + strings.Repeat("0", 64) + "'}", deployment, `image: "fairlead-dev/fairlead@sha256:` + strings.Repeat("0", 64) + `"`},
		"image.pullPolicy":                          {"image: {pullPolicy: Always}", deployment, "imagePullPolicy: Always"},
		"imagePullSecrets":                          {"imagePullSecrets: [{name: s}]", deployment, "imagePullSecrets:\n        - name: s"},
		"replicas":                                  {"replicas: 0", deployment, "replicas: 0"},
		"strategy":                                  {"strategy: {type: Recreate}", deployment, "strategy:\n    type: Recreate"},
		"systems":                                   {"systems: [doriscluster]", deployment, "--systems=doriscluster"},
		"watchNamespaces":                           {"watchNamespaces: [a, b]", deployment, "--namespaces=a,b"},
		"leaderElection.enabled":                    {"leaderElection: {enabled: false}", deployment, "--leader-elect=false"},
		"leaderElection.leaseName":                  {"leaderElection: {leaseName: l}", deployment, "--leader-elect-name=l"},
		"logging.format":                            {"logging: {format: text}", config, "logFormat: text"},
		"logging.level":                             {"logging: {level: warn}", config, "logLevel: warn"},
		"workers":                                   {"workers: 3", config, "workers: 3"},
		"dialVia":                                   {"dialVia: 'socks5://p:1080'", config, "dialVia: socks5://p:1080"},
		"deletionProtection.install":                {"deletionProtection: {install: false}", "deletion-protection.yaml", ""},
		"defaultConfiguration.create":               {"defaultConfiguration: {create: false}", config, ""},
		"defaultConfiguration.append":               {"defaultConfiguration: {append: false, options: {workers: 3}}", config, "kind: OperatorConfiguration\n    workers: 3\n"},
		"defaultConfiguration.options":              {"logging: {level: warn}\ndefaultConfiguration: {options: {workers: 3}}", config, "logLevel: warn\n    workers: 3\n"},
		"defaultConfiguration.existingConfigMap":    {"defaultConfiguration: {create: false, existingConfigMap: mine}", deployment, "configMap:\n            name: mine"},
		"defaultConfiguration.key":                  {"defaultConfiguration: {create: false, existingConfigMap: mine, key: k}", deployment, "- key: \"k\"\n                path: config.yaml"},
		"operatorDeployment.annotations":            {"operatorDeployment: {annotations: {a: b}}", deployment, "  annotations:\n    a: b\nspec:"},
		"operatorDeployment.revisionHistoryLimit":   {"operatorDeployment: {revisionHistoryLimit: 7}", deployment, "revisionHistoryLimit: 7"},
		"operatorPod.restartOnConfigChange":         {"operatorPod: {restartOnConfigChange: true}", deployment, "checksum/config: "},
		"operatorPod.annotations":                   {"operatorPod: {annotations: {a: b}}", deployment, "default-container: operator\n        a: b"},
		"operatorPod.labels":                        {"operatorPod: {labels: {a: b}}", deployment, "      labels:\n        a: b"},
		"operatorPod.env":                           {"operatorPod: {env: [{name: A, value: b}]}", deployment, "- name: A\n              value: b"},
		"operatorPod.envFrom":                       {"operatorPod: {envFrom: [{secretRef: {name: s}}]}", deployment, "envFrom:\n            - secretRef:\n                name: s"},
		"operatorPod.dnsPolicy":                     {"operatorPod: {dnsPolicy: Default}", deployment, "dnsPolicy: Default"},
		"operatorPod.dnsConfig":                     {"operatorPod: {dnsConfig: {searches: [x]}}", deployment, "dnsConfig:\n        searches:\n        - x"},
		"operatorPod.hostAliases":                   {"operatorPod: {hostAliases: [{ip: 1.2.3.4, hostnames: [h]}]}", deployment, "hostAliases:"},
		"operatorPod.nodeSelector":                  {"operatorPod: {nodeSelector: {a: b}}", deployment, "nodeSelector:\n        a: b"},
		"operatorPod.affinity":                      {"operatorPod: {affinity: {podAffinity: {}}}", deployment, "affinity:\n        podAffinity: {}"},
		"operatorPod.tolerations":                   {"operatorPod: {tolerations: [{operator: Exists}]}", deployment, "tolerations:\n        - operator: Exists"},
		"operatorPod.topologySpreadConstraints":     {"operatorPod: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule}]}", deployment, "topologySpreadConstraints:\n        - labelSelector:\n            matchLabels:"},
		"operatorPod.priorityClassName":             {"operatorPod: {priorityClassName: high}", deployment, "priorityClassName: high"},
		"operatorPod.terminationGracePeriodSeconds": {"operatorPod: {terminationGracePeriodSeconds: 7}", deployment, "terminationGracePeriodSeconds: 7"},
		"operatorPod.resources":                     {"operatorPod: {resources: {limits: {cpu: 3}}}", deployment, "limits:\n              cpu: 3"},
		"operatorPod.initContainers":                {"operatorPod: {initContainers: [{name: i, image: x}]}", deployment, "initContainers:\n        - image: x"},
		"operatorPod.sidecarContainers":             {"operatorPod: {sidecarContainers: [{name: s, image: x}]}", deployment, "        - image: x\n          name: s"},
		"operatorPod.volumes":                       {"operatorPod: {volumes: [{name: v, emptyDir: {}}]}", deployment, "- emptyDir: {}\n          name: v"},
		"operatorPod.volumeMounts":                  {"operatorPod: {volumes: [{name: v, emptyDir: {}}], volumeMounts: [{name: v, mountPath: /v}]}", deployment, "- mountPath: /v\n              name: v"},
		"operatorPod.lifecycle":                     {"operatorPod: {lifecycle: {preStop: {sleep: {seconds: 1}}}}", deployment, "lifecycle:\n            preStop:"},
		"podSecurityContext":                        {"podSecurityContext: {fsGroup: 7}", deployment, "fsGroup: 7"},
		"operatorSecurityContext":                   {"operatorSecurityContext: {runAsUser: 7}", deployment, "runAsUser: 7"},
		"operatorServiceAccount.create":             {"operatorServiceAccount: {create: false}", deployment, "serviceAccountName: default"},
		"operatorServiceAccount.name":               {"operatorServiceAccount: {name: me}", deployment, "serviceAccountName: me"},
		"operatorServiceAccount.annotations":        {"operatorServiceAccount: {annotations: {a: b}}", "serviceaccount.yaml", "annotations:\n    a: b"},
		"rbac.create":                               {"rbac: {create: false}", roles, ""},
		"rbac.clusterScoped":                        {"watchNamespaces: [a]\nrbac: {clusterScoped: false}", "rbac-users.yaml", ""},
		"rbac.aggregateToUserRoles":                 {"rbac: {aggregateToUserRoles: false}", "rbac-users.yaml", ""},
		"rbac.annotations":                          {"rbac: {annotations: {a: b}}", roles, "annotations:\n    a: b"},
		"crds.install":                              {"crds: {install: false}", "crds.yaml", ""},
		"crds.keep":                                 {"crds: {keep: false}", "crds.yaml", "kind: CustomResourceDefinition"},
		"crds.annotations":                          {"crds: {annotations: {c: d}}", "crds.yaml", "c: d"},
		"operatorHealth.port":                       {"operatorHealth: {port: 7}", deployment, "--health-probe-bind-address=:7"},
		"operatorHealth.livenessProbe":              {"operatorHealth: {livenessProbe: {timeoutSeconds: 7}}", deployment, "timeoutSeconds: 7"},
		"operatorHealth.readinessProbe":             {"operatorHealth: {readinessProbe: {timeoutSeconds: 7}}", deployment, "timeoutSeconds: 7"},
		"operatorHealth.startupProbe":               {"operatorHealth: {startupProbe: {timeoutSeconds: 7}}", deployment, "startupProbe:\n            httpGet:\n              path: /healthz\n              port: probes\n            timeoutSeconds: 7"},
		"metrics.enabled":                           {"metrics: {enabled: false}", deployment, "--metrics-bind-address=0"},
		"metrics.port":                              {"metrics: {port: 7}", deployment, "--metrics-bind-address=:7"},
		"metrics.service.create":                    {"metrics: {service: {create: false}}", "service.yaml", ""},
		"metrics.service.annotations":               {"metrics: {service: {annotations: {a: b}}}", "service.yaml", "annotations:\n    a: b"},
		"metrics.service.labels":                    {"metrics: {service: {labels: {a: b}}}", "service.yaml", "labels:\n    a: b"},
		"metrics.prometheusRule.create":             {alerts(""), "prometheusrule.yaml", "kind: PrometheusRule"},
		"metrics.prometheusRule.labels":             {alerts("labels: {a: b}"), "prometheusrule.yaml", "labels:\n    a: b"},
		"metrics.prometheusRule.annotations":        {alerts("annotations: {a: b}"), "prometheusrule.yaml", "annotations:\n    a: b"},
		"metrics.prometheusRule.disabled":           {alerts("disabled: [FairleadDown]"), "prometheusrule.yaml", "rules:\n        - alert: FairleadReconcileFailing"},
		"metrics.serviceMonitor.create":             {monitor(""), "servicemonitor.yaml", "kind: ServiceMonitor"},
		"metrics.serviceMonitor.labels":             {monitor("labels: {a: b}"), "servicemonitor.yaml", "labels:\n    a: b"},
		"metrics.serviceMonitor.annotations":        {monitor("annotations: {a: b}"), "servicemonitor.yaml", "annotations:\n    a: b"},
		"metrics.serviceMonitor.interval":           {monitor("interval: 30s"), "servicemonitor.yaml", "interval: 30s"},
		"metrics.serviceMonitor.scrapeTimeout":      {monitor("scrapeTimeout: 5s"), "servicemonitor.yaml", "scrapeTimeout: 5s"},
		"metrics.serviceMonitor.relabelings":        {monitor("relabelings: [{action: x}]"), "servicemonitor.yaml", "relabelings:\n        - action: x"},
		"metrics.serviceMonitor.metricRelabelings":  {monitor("metricRelabelings: [{action: x}]"), "servicemonitor.yaml", "metricRelabelings:\n        - action: x"},
		"podDisruptionBudget.create":                {"podDisruptionBudget: {create: true}", "poddisruptionbudget.yaml", "maxUnavailable: 1"},
		"podDisruptionBudget.maxUnavailable":        {"podDisruptionBudget: {create: true, maxUnavailable: 50%}", "poddisruptionbudget.yaml", "maxUnavailable: 50%"},
		"podDisruptionBudget.minAvailable":          {"replicas: 2\npodDisruptionBudget: {create: true, minAvailable: 1, maxUnavailable: ''}", "poddisruptionbudget.yaml", "minAvailable: 1"},
		"networkPolicy.create":                      {"networkPolicy: {create: true}", "networkpolicy.yaml", "policyTypes:\n    - Ingress\n  ingress:"},
		"networkPolicy.metricsFrom":                 {"networkPolicy: {create: true, metricsFrom: [{podSelector: {}}]}", "networkpolicy.yaml", "from:\n        - podSelector: {}"},
		"networkPolicy.restrictEgress":              {"networkPolicy: {create: true, restrictEgress: true}", "networkpolicy.yaml", "- namespaceSelector: {}"},
		"networkPolicy.apiServerPorts":              {"networkPolicy: {create: true, restrictEgress: true, apiServerPorts: [7]}", "networkpolicy.yaml", "- port: 7"},
		"networkPolicy.egress":                      {"networkPolicy: {create: true, restrictEgress: true, egress: [{ports: [{port: 9}]}]}", "networkpolicy.yaml", "- port: 9"},
	}
	base := rendered(t, "{}")
	for path, test := range tests {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			text := rendered(t, test.values).files[test.file]
			if path != "systems" && text == base.files[test.file] {
				t.Errorf("%s is as without the value", test.file)
			}
			if test.want == "" && strings.TrimSpace(text) != "" {
				t.Errorf("%s is rendered:\n%s", test.file, text)
			}
			if !strings.Contains(trimSpaces(text), test.want) {
				t.Errorf("%s lacks %q:\n%s", test.file, test.want, text)
			}
		})
	}
	for _, path := range valuePaths(t) {
		if _, ok := tests[path]; !ok && path != "checkOtherReleases" { // needs a cluster: see package live
			t.Errorf("value %s has no case", path)
		}
	}
}

func monitor(more string) string {
	return "metrics: {serviceMonitor: {create: true, " + more + "}}"
}

func alerts(more string) string {
	return "metrics: {prometheusRule: {create: true, " + more + "}}"
}

// valuePaths are the values of values.yaml: what has a comment of its own.
func valuePaths(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(chartDir + "/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	doc.Content[0].Content[0].HeadComment = "#"
	var out []string
	var walk func(n *yaml.Node, prefix string)
	walk = func(n *yaml.Node, prefix string) {
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, node := n.Content[i], n.Content[i+1]
			if key.HeadComment == "" && node.Kind == yaml.MappingNode {
				walk(node, prefix+key.Value+".")
			} else {
				out = append(out, prefix+key.Value)
			}
		}
	}
	walk(doc.Content[0], "")
	if len(out) < 60 {
		t.Fatalf("values.yaml has %d values", len(out))
	}
	return out
}

// The image by default is that of the chart's version of the program.
func TestImageTagIsTheAppVersion(t *testing.T) {
	t.Parallel()
	c := load(t)
	c.Metadata.AppVersion = "v1.2.3"
	r, err := render(t, c, "{}", install("fairlead", "fairlead-system"))
	if err != nil {
		t.Fatal(err)
	}
	if got := operatorContainer(t, r).Image; got != "fairlead-dev/fairlead:v1.2.3" {
		t.Errorf("image is %s", got)
	}
}

// Nothing is an amount, and so is zero.
func TestABudgetThatKeepsNone(t *testing.T) {
	t.Parallel()
	text := rendered(t, "podDisruptionBudget: {create: true, minAvailable: 0, maxUnavailable: ''}").files["poddisruptionbudget.yaml"]
	if !strings.Contains(text, "minAvailable: 0\n") || strings.Contains(text, "maxUnavailable") {
		t.Errorf("the budget is\n%s", text)
	}
}

// There is no Secret, and no password, in what the chart renders.
func TestNoPasswordAnywhere(t *testing.T) {
	t.Parallel()
	files, err := os.ReadDir("testdata/values")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile("testdata/values/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range rendered(t, string(text)).objects {
			if o.GetKind() == "Secret" {
				t.Errorf("%s: there is a Secret %s", f.Name(), o.GetName())
			}
		}
	}
	for _, f := range load(t).Templates {
		if regexp.MustCompile(`(?i)password|randAlpha|genCA|genSelfSigned|htpasswd`).Match(f.Data) {
			t.Errorf("%s speaks of passwords, or makes something by chance", f.Name)
		}
	}
}

// Releases of other names, and of one name in other namespaces, share no name.
func TestReleasesShareNoNames(t *testing.T) {
	t.Parallel()
	type id struct{ name, namespace, watch string }
	seen := map[string]id{}
	for _, r := range []id{{"fairlead", "a", "n1"}, {"blue", "a", "n2"}, {"fairlead", "b", "n3"}, {"green-fairlead", "b", "n4"}} {
		out, err := render(t, load(t), "watchNamespaces: ["+r.watch+"]\nmetrics: {serviceMonitor: {create: true}}\npodDisruptionBudget: {create: true}\nnetworkPolicy: {create: true}\ncrds: {install: false}", install(r.name, r.namespace))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range out.names() {
			if other, taken := seen[name]; taken {
				t.Errorf("%v and %v both have %s", other, r, name)
			}
			seen[name] = r
		}
		d := get[appsv1.Deployment](t, out, "Deployment", "")
		if d.Spec.Selector.MatchLabels["app.kubernetes.io/instance"] != r.name {
			t.Errorf("%v selects %v", r, d.Spec.Selector.MatchLabels)
		}
	}
}

// Two releases that work on the same have the same name for it, so that Helm
// refuses the second one.
func TestReleasesThatWorkOnTheSameCollide(t *testing.T) {
	t.Parallel()
	claims := func(values string) []string {
		var out []string
		r, err := render(t, load(t), values, install("any", "b"))
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range r.names() {
			if strings.HasSuffix(n, "/fairlead-operator") {
				out = append(out, n)
			}
		}
		return out
	}
	if got := claims("watchNamespaces: [n1, n2]"); !slices.Contains(got, "RoleBinding n1/fairlead-operator") || !slices.Contains(got, "RoleBinding n2/fairlead-operator") {
		t.Errorf("got %v", got)
	}
	if got := claims("{}"); !slices.Contains(got, "ClusterRoleBinding /fairlead-operator") {
		t.Errorf("got %v", got)
	}
}
