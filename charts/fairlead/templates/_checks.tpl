{{/* Values that contradict each other are refused here, with the names of both:
what the schema cannot say. */}}
{{- define "fairlead.check" -}}
{{- include "fairlead.checkOther" . -}}
{{- include "fairlead.checkReplicas" . -}}
{{- include "fairlead.checkConfiguration" . -}}
{{- include "fairlead.checkPod" . -}}
{{- end -}}

{{- define "fairlead.checkOther" -}}
{{- if hasKey .Values "dorisOperator" -}}
{{- fail "dorisOperator is a value of the doris-operator chart. This chart names things differently: docs/migrating-helm-values.md has each value beside its successor; then leave dorisOperator out" -}}
{{- end -}}
{{- $name := include "fairlead.fullname" . -}}
{{- if not (regexMatch "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" $name) -}}
{{- fail (printf "the objects would be named %q, which Kubernetes does not take: write fullnameOverride in small letters, digits and dashes" $name) -}}
{{- end -}}
{{- if and .Values.metrics.serviceMonitor.create (not (and .Values.metrics.enabled .Values.metrics.service.create)) -}}
{{- fail "metrics.serviceMonitor.create needs metrics.enabled and metrics.service.create: there is nothing that it could select" -}}
{{- end -}}
{{- if and .Values.metrics.prometheusRule.create (not .Values.metrics.enabled) -}}
{{- fail "metrics.prometheusRule.create needs metrics.enabled: without metrics the first alert would fire for ever" -}}
{{- end -}}
{{- if and .Values.metrics.enabled (eq (int .Values.metrics.port) (int .Values.operatorHealth.port)) -}}
{{- fail (printf "metrics.port and operatorHealth.port are both %d; they need a port each" (int .Values.metrics.port)) -}}
{{- end -}}
{{- end -}}

{{- define "fairlead.checkReplicas" -}}
{{- if and (gt (int .Values.replicas) 1) (not .Values.leaderElection.enabled) -}}
{{- fail (printf "replicas is %d and leaderElection.enabled is false: several operators would work on the same resources at once. Set leaderElection.enabled to true, or replicas to 1" (int .Values.replicas)) -}}
{{- end -}}
{{- $strategy := include "fairlead.strategy" . | fromYaml -}}
{{- if and (ne (default "RollingUpdate" $strategy.type) "Recreate") (not .Values.leaderElection.enabled) -}}
{{- fail "strategy.type is RollingUpdate and leaderElection.enabled is false: in an update, the old and the new operator would work at once. Set leaderElection.enabled to true, or strategy.type to Recreate" -}}
{{- end -}}
{{- if and (eq (default "" $strategy.type) "Recreate") $strategy.rollingUpdate -}}
{{- fail "strategy.type is Recreate, which has no strategy.rollingUpdate: leave one of them out" -}}
{{- end -}}
{{- if .Values.podDisruptionBudget.create -}}
{{- $min := toString .Values.podDisruptionBudget.minAvailable -}}
{{- $max := toString .Values.podDisruptionBudget.maxUnavailable -}}
{{- if and $min $max (ne $max "<nil>") -}}
{{- fail "podDisruptionBudget.minAvailable and podDisruptionBudget.maxUnavailable exclude each other: set maxUnavailable to \"\"" -}}
{{- end -}}
{{- if and (not $min) (not $max) -}}
{{- fail "podDisruptionBudget.create needs podDisruptionBudget.maxUnavailable or podDisruptionBudget.minAvailable" -}}
{{- end -}}
{{- if or (eq $min "100%") (eq $max "0") (eq $max "0%") (and (regexMatch "^[0-9]+$" $min) (ge (atoi $min) (int .Values.replicas)) (gt (int .Values.replicas) 0)) -}}
{{- fail (printf "podDisruptionBudget lets none of replicas: %d go: nodes could not be drained. Lower podDisruptionBudget.minAvailable, or raise replicas or podDisruptionBudget.maxUnavailable" (int .Values.replicas)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "fairlead.checkConfiguration" -}}
{{- $c := .Values.defaultConfiguration -}}
{{- $owned := dict "systems" "systems" "namespaces" "watchNamespaces" "leaderElect" "leaderElection.enabled" "leaderElectName" "leaderElection.leaseName" "leaderElectNamespace" "the namespace of the release" "metricsBindAddress" "metrics.port" "healthProbeBindAddress" "operatorHealth.port" -}}
{{- range $key := keys $c.options | sortAlpha -}}
{{- if hasKey $owned $key -}}
{{- fail (printf "defaultConfiguration.options.%s: other objects of the chart depend on it, so it is set by %s alone" $key (get $owned $key)) -}}
{{- end -}}
{{- end -}}
{{- $short := dict "logFormat" .Values.logging.format "logLevel" .Values.logging.level "workers" .Values.workers "dialVia" .Values.dialVia -}}
{{- $names := dict "logFormat" "logging.format" "logLevel" "logging.level" "workers" "workers" "dialVia" "dialVia" -}}
{{- range $key := keys $short | sortAlpha -}}
{{- if get $short $key -}}
{{- $name := get $names $key -}}
{{- if not $c.create -}}
{{- fail (printf "%s is written into the ConfigMap that defaultConfiguration.create: false leaves out: write %s into your own, and leave %s out" $name $key $name) -}}
{{- else if not $c.append -}}
{{- fail (printf "%s is not used with defaultConfiguration.append: false: write defaultConfiguration.options.%s instead" $name $key) -}}
{{- else if and (hasKey $c.options $key) (ne (toString (get $c.options $key)) (toString (get $short $key))) -}}
{{- fail (printf "%s and defaultConfiguration.options.%s differ: leave one of them out" $name $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and $c.create $c.existingConfigMap -}}
{{- fail (printf "defaultConfiguration.existingConfigMap names %q, and defaultConfiguration.create would make another: set create to false" $c.existingConfigMap) -}}
{{- end -}}
{{- if and (not $c.create) $c.options -}}
{{- fail "defaultConfiguration.options are not used with defaultConfiguration.create: false: write them into the ConfigMap of defaultConfiguration.existingConfigMap" -}}
{{- end -}}
{{- end -}}

{{- define "fairlead.checkPod" -}}
{{- if and .Values.operatorPod.restartOnConfigChange .Values.defaultConfiguration.create (hasKey .Values.operatorPod.annotations "checksum/config") -}}
{{- fail "operatorPod.annotations has checksum/config, which operatorPod.restartOnConfigChange writes, too: leave one of them out" -}}
{{- end -}}
{{- range $key := list "app.kubernetes.io/name" "app.kubernetes.io/instance" "app.kubernetes.io/component" -}}
{{- if or (hasKey $.Values.operatorPod.labels $key) (hasKey $.Values.commonLabels $key) -}}
{{- fail (printf "operatorPod.labels and commonLabels may not have %s: by it the Deployment finds its Pods" $key) -}}
{{- end -}}
{{- end -}}
{{- $byFlag := dict "FAIRLEAD_SYSTEMS" "systems" "FAIRLEAD_NAMESPACES" "watchNamespaces" "FAIRLEAD_LEADER_ELECT" "leaderElection.enabled" "FAIRLEAD_LEADER_ELECT_NAME" "leaderElection.leaseName" "FAIRLEAD_LEADER_ELECT_NAMESPACE" "the namespace of the release" "FAIRLEAD_METRICS_BIND_ADDRESS" "metrics.port" "FAIRLEAD_HEALTH_PROBE_BIND_ADDRESS" "operatorHealth.port" -}}
{{- range .Values.operatorPod.env -}}
{{- if hasKey $byFlag .name -}}
{{- fail (printf "operatorPod.env has %s, which would not be used: it is set by %s" .name (get $byFlag .name)) -}}
{{- end -}}
{{- if has .name (list "POD_NAME" "POD_NAMESPACE" "POD_UID") -}}
{{- fail (printf "operatorPod.env has %s, which the chart sets itself" .name) -}}
{{- end -}}
{{- end -}}
{{- range concat .Values.operatorPod.sidecarContainers .Values.operatorPod.initContainers -}}
{{- if eq .name "operator" -}}
{{- fail "operatorPod has a further container named operator, which is the name of the operator's own" -}}
{{- end -}}
{{- end -}}
{{- range .Values.operatorPod.volumes -}}
{{- if eq .name "config" -}}
{{- fail "operatorPod.volumes has one named config, which is the name of the chart's own" -}}
{{- end -}}
{{- end -}}
{{- if and .Values.podSecurityContext.runAsNonRoot (kindIs "float64" .Values.podSecurityContext.runAsUser) (eq (int .Values.podSecurityContext.runAsUser) 0) -}}
{{- fail "podSecurityContext.runAsUser is 0 and podSecurityContext.runAsNonRoot is true: the Pod would not start" -}}
{{- end -}}
{{- end -}}
