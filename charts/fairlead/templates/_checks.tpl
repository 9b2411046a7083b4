{{/* Values that contradict each other are refused here, with the names of both:
what the schema cannot say. */}}
{{- define "fairlead.check" -}}
{{- include "fairlead.checkOther" . -}}
{{- include "fairlead.checkReplicas" . -}}
{{- include "fairlead.checkConfiguration" . -}}
{{- include "fairlead.checkDurations" . -}}
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
{{- if .Values.podDisruptionBudget.create }}{{ include "fairlead.checkBudget" . }}{{ end -}}
{{- end -}}

{{- define "fairlead.checkBudget" -}}
{{- $min := include "fairlead.amount" .Values.podDisruptionBudget.minAvailable -}}
{{- $max := include "fairlead.amount" .Values.podDisruptionBudget.maxUnavailable -}}
{{- $replicas := int .Values.replicas -}}
{{- if and $min $max -}}
{{- fail "podDisruptionBudget.minAvailable and podDisruptionBudget.maxUnavailable exclude each other: set maxUnavailable to \"\"" -}}
{{- end -}}
{{- if not (or $min $max) -}}
{{- fail "podDisruptionBudget.create needs podDisruptionBudget.maxUnavailable or podDisruptionBudget.minAvailable" -}}
{{- end -}}
{{- $stay := trimSuffix "%" $min | default "0" | atoi -}}
{{- if hasSuffix "%" $min }}{{ $stay = div (add (mul $stay $replicas) 99) 100 }}{{ end -}}
{{- if or (regexMatch "^0+%?$" $max) (and $min (gt $replicas 0) (ge (int $stay) $replicas)) -}}
{{- fail (printf "podDisruptionBudget lets none of replicas: %d go: nodes could not be drained. Lower podDisruptionBudget.minAvailable, or raise replicas or podDisruptionBudget.maxUnavailable" $replicas) -}}
{{- end -}}
{{- end -}}

{{/* A number or a percentage as text; what is not there is none. */}}
{{- define "fairlead.amount" -}}
{{- if not (kindIs "invalid" .) }}{{ toString . }}{{ end -}}
{{- end -}}

{{- define "fairlead.checkConfiguration" -}}
{{- $c := .Values.defaultConfiguration -}}
{{- $owned := dict "systems" "systems" "namespaces" "watchNamespaces" "leaderElect" "leaderElection.enabled" "leaderElectName" "leaderElection.leaseName" "leaderElectNamespace" "the namespace of the release" "metricsBindAddress" "metrics.port" "healthProbeBindAddress" "operatorHealth.port" -}}
{{- $options := default dict $c.options -}}
{{- range $key := keys $options | sortAlpha -}}
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
{{- else if and (hasKey $options $key) (ne (toString (get $options $key)) (toString (get $short $key))) -}}
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

{{/* Durations are within their bounds, for all resources and for those of a namespace. */}}
{{- define "fairlead.checkDurations" -}}
{{- $bounds := .Files.Get "files/durations.yaml" | fromYaml -}}
{{- $options := default dict .Values.defaultConfiguration.options -}}
{{- $all := dict "defaultConfiguration.options" $options -}}
{{- range $namespace, $said := default dict $options.perNamespace -}}
{{- $_ := set $all (printf "defaultConfiguration.options.perNamespace.%s" $namespace) (default dict $said) -}}
{{- end -}}
{{- range $where, $said := $all -}}
{{- range $key, $bound := $bounds -}}
{{- if hasKey $said $key -}}
{{- $seconds := 0.0 -}}
{{- range regexFindAll "[0-9.]+(ms|[smh])" (get $said $key) -1 -}}
{{- $unit := get (dict "ms" 0.001 "s" 1.0 "m" 60.0 "h" 3600.0) (regexFind "[a-z]+" .) -}}
{{- $seconds = addf $seconds (mulf (regexFind "[0-9.]+" . | float64) $unit) -}}
{{- end -}}
{{- if or (lt $seconds (float64 $bound.least)) (gt $seconds (float64 $bound.most)) -}}
{{- fail (printf "%s.%s is %s; write %s" $where $key (get $said $key) $bound.range) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "fairlead.checkPod" -}}
{{- if and .Values.operatorPod.restartOnConfigChange .Values.defaultConfiguration.create (hasKey (default dict .Values.operatorPod.annotations) "checksum/config") -}}
{{- fail "operatorPod.annotations has checksum/config, which operatorPod.restartOnConfigChange writes, too: leave one of them out" -}}
{{- end -}}
{{- range $key := list "app.kubernetes.io/name" "app.kubernetes.io/instance" "app.kubernetes.io/component" -}}
{{- if or (hasKey (default dict $.Values.operatorPod.labels) $key) (hasKey (default dict $.Values.commonLabels) $key) -}}
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
{{- include "fairlead.checkVariables" . -}}
{{- include "fairlead.checkVolumes" . -}}
{{- include "fairlead.checkTwice" (list "operatorPod.env" "name" (default list .Values.operatorPod.env)) -}}
{{- $containers := concat (default list .Values.operatorPod.sidecarContainers) (default list .Values.operatorPod.initContainers) -}}
{{- include "fairlead.checkTwice" (list "operatorPod, among its containers," "name" $containers) -}}
{{- range $containers -}}
{{- if eq .name "operator" -}}
{{- fail "operatorPod has a further container named operator, which is the name of the operator's own" -}}
{{- end -}}
{{- end -}}
{{- with .Values.podSecurityContext -}}
{{- if and .runAsNonRoot (hasKey . "runAsUser") (eq (toString .runAsUser) "0") -}}
{{- fail "podSecurityContext.runAsUser is 0 and podSecurityContext.runAsNonRoot is true: the Pod would not start" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What a variable decides, no value may say as well: the variable would win. */}}
{{- define "fairlead.checkVariables" -}}
{{- $byFile := dict -}}
{{- range $key, $_ := default dict .Values.defaultConfiguration.options -}}
{{- $_ := set $byFile (printf "FAIRLEAD_%s" (snakecase $key | upper)) (printf "defaultConfiguration.options.%s" $key) -}}
{{- end -}}
{{- $short := dict "FAIRLEAD_LOG_FORMAT" (list .Values.logging.format "logging.format") "FAIRLEAD_LOG_LEVEL" (list .Values.logging.level "logging.level") "FAIRLEAD_WORKERS" (list .Values.workers "workers") "FAIRLEAD_DIAL_VIA" (list .Values.dialVia "dialVia") -}}
{{- range $variable, $of := $short -}}
{{- if index $of 0 }}{{ $_ := set $byFile $variable (index $of 1) }}{{ end -}}
{{- end -}}
{{- range .Values.operatorPod.env -}}
{{- if hasKey $byFile .name -}}
{{- fail (printf "operatorPod.env has %s, by which %s would not be used: leave one of them out" .name (get $byFile .name)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A mount needs its volume, and a place of its own. */}}
{{- define "fairlead.checkVolumes" -}}
{{- $pod := .Values.operatorPod -}}
{{- $names := dict -}}
{{- if include "fairlead.configMapName" . }}{{ $_ := set $names "config" true }}{{ end -}}
{{- range $pod.volumes -}}
{{- if eq .name "config" -}}
{{- fail "operatorPod.volumes has one named config, which is the name of the chart's own" -}}
{{- end -}}
{{- $_ := set $names .name true -}}
{{- end -}}
{{- include "fairlead.checkTwice" (list "operatorPod.volumes" "name" (default list $pod.volumes)) -}}
{{- include "fairlead.checkTwice" (list "operatorPod.volumeMounts" "mountPath" (default list $pod.volumeMounts)) -}}
{{- range $pod.volumeMounts -}}
{{- if not (hasKey $names .name) -}}
{{- fail (printf "operatorPod.volumeMounts has %s, of which there is no volume: name it in operatorPod.volumes" .name) -}}
{{- end -}}
{{- if and (hasKey $names "config") (eq (trimSuffix "/" .mountPath) "/etc/fairlead") -}}
{{- fail "operatorPod.volumeMounts has the path /etc/fairlead, at which the chart mounts the configuration" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* No two items of a list by the same name: (list "what" "key" items). */}}
{{- define "fairlead.checkTwice" -}}
{{- $what := index . 0 -}}
{{- $key := index . 1 -}}
{{- $seen := dict -}}
{{- range index . 2 -}}
{{- $name := get . $key -}}
{{- if hasKey $seen $name -}}
{{- fail (printf "%s has %s twice" $what $name) -}}
{{- end -}}
{{- $_ := set $seen $name true -}}
{{- end -}}
{{- end -}}
