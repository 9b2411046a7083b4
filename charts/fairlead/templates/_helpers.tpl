{{/* Name of the chart in labels. */}}
{{- define "fairlead.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* Name of the objects of a release. 52 characters leave room for what is added to it. */}}
{{- define "fairlead.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "fairlead.name" . -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Name of objects outside of namespaces: releases of one name may live in several. */}}
{{- define "fairlead.clusterName" -}}
{{- printf "%s-%s" .Release.Namespace (include "fairlead.fullname" .) -}}
{{- end -}}

{{/* Name of what stands for the right to work in a namespace, or in all. It is
the same for every release: two that work on the same cannot both have it. */}}
{{- define "fairlead.claimName" -}}
fairlead-operator
{{- end -}}

{{- define "fairlead.selectorLabels" -}}
app.kubernetes.io/name: {{ include "fairlead.name" . | toYaml }}
app.kubernetes.io/instance: {{ toYaml .Release.Name }}
app.kubernetes.io/component: operator
{{- end -}}

{{- define "fairlead.labels" -}}
{{- $own := dict "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-")
  "app.kubernetes.io/version" (.Chart.AppVersion | replace "+" "_" | trunc 63)
  "app.kubernetes.io/managed-by" .Release.Service
  "app.kubernetes.io/part-of" "fairlead" -}}
{{- toYaml (merge $own (include "fairlead.selectorLabels" . | fromYaml) (default dict .Values.commonLabels)) -}}
{{- end -}}

{{- define "fairlead.serviceAccountName" -}}
{{- if .Values.operatorServiceAccount.create -}}
{{- default (include "fairlead.fullname" .) .Values.operatorServiceAccount.name -}}
{{- else -}}
{{- default "default" .Values.operatorServiceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "fairlead.leaseName" -}}
{{- default (include "fairlead.fullname" .) .Values.leaderElection.leaseName -}}
{{- end -}}

{{- define "fairlead.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{/* Name of the ConfigMap that is mounted, or nothing. */}}
{{- define "fairlead.configMapName" -}}
{{- if .Values.defaultConfiguration.create -}}
{{- printf "%s-config" (include "fairlead.fullname" .) -}}
{{- else -}}
{{- .Values.defaultConfiguration.existingConfigMap -}}
{{- end -}}
{{- end -}}

{{/* The options of the configuration file, as they are asked for by values. */}}
{{- define "fairlead.options" -}}
{{- $options := dict -}}
{{- if .Values.defaultConfiguration.append -}}
{{- with .Values.logging.format }}{{ $_ := set $options "logFormat" . }}{{ end -}}
{{- with .Values.logging.level }}{{ $_ := set $options "logLevel" . }}{{ end -}}
{{- with .Values.workers }}{{ $_ := set $options "workers" (int .) }}{{ end -}}
{{- with .Values.dialVia }}{{ $_ := set $options "dialVia" . }}{{ end -}}
{{- end -}}
{{- range $key, $value := .Values.defaultConfiguration.options -}}
{{- $_ := set $options $key (kindIs "float64" $value | ternary (int $value) $value) -}}
{{- end -}}
{{- if $options }}{{ toYaml $options }}{{ end -}}
{{- end -}}

{{/* The data of the ConfigMap: also what restartOnConfigChange: "data" hashes. */}}
{{- define "fairlead.configData" -}}
config.yaml: |
  apiVersion: config.fairlead.dev/v1alpha1
  kind: OperatorConfiguration
{{- with include "fairlead.options" . }}
{{ . | indent 2 }}
{{- end }}
{{- end -}}

{{/* What the strategy is, with the default that fits the leader election. */}}
{{- define "fairlead.strategy" -}}
{{- if .Values.strategy -}}
{{- toYaml .Values.strategy -}}
{{- else if .Values.leaderElection.enabled -}}
type: RollingUpdate
rollingUpdate:
  maxSurge: 1
  maxUnavailable: 0
{{- else -}}
type: Recreate
{{- end -}}
{{- end -}}

{{/* The rules of a role, as config/rbac has them: (list . "file"). */}}
{{- define "fairlead.rules" -}}
{{ regexReplaceAll "^# Generated[^\n]*\n" ((index . 0).Files.Get (printf "files/rbac/%s.yaml" (index . 1))) "" | trim }}
{{- end -}}

{{- define "fairlead.subjects" -}}
- kind: ServiceAccount
  name: {{ include "fairlead.serviceAccountName" . | toYaml }}
  namespace: {{ toYaml .Release.Namespace }}
{{- end -}}

{{/* Labels of definitions, which outlive the release. */}}
{{- define "fairlead.crdLabels" -}}
{{- toYaml (merge (dict "app.kubernetes.io/name" (include "fairlead.name" .) "app.kubernetes.io/managed-by" .Release.Service "app.kubernetes.io/part-of" "fairlead") (default dict .Values.commonLabels)) -}}
{{- end -}}
