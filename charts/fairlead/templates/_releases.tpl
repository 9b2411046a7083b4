{{/* Another release that works on the same namespaces is refused before anything
is written. Without a cluster (helm template) nothing is found. What stands for
the right to work somewhere has one name for all releases, so that Helm itself
refuses the second one where this cannot look. */}}
{{- define "fairlead.checkReleases" -}}
{{- if .Values.checkOtherReleases }}{{ include "fairlead.checkNamespaces" . }}{{ end -}}
{{- if and .Values.checkOtherReleases .Values.rbac.create -}}
{{- $claim := include "fairlead.claimName" . -}}
{{- $everywhere := lookup "rbac.authorization.k8s.io/v1" "ClusterRoleBinding" "" $claim -}}
{{- if and $everywhere (ne (include "fairlead.isOwn" (list . $everywhere)) "true") -}}
{{- fail (printf "%s works in all namespaces already. Two operators on the same resources undo each other's work: give that one watchNamespaces, or uninstall it. (checkOtherReleases: false skips this look)" (include "fairlead.releaseOf" $everywhere)) -}}
{{- end -}}
{{- if .Values.watchNamespaces -}}
{{- range $namespace := .Values.watchNamespaces -}}
{{- $there := lookup "rbac.authorization.k8s.io/v1" "RoleBinding" $namespace $claim -}}
{{- if and $there (ne (include "fairlead.isOwn" (list $ $there)) "true") -}}
{{- fail (printf "%s works in namespace %q already. Two operators on the same resources undo each other's work: take it out of watchNamespaces here or there. (checkOtherReleases: false skips this look)" (include "fairlead.releaseOf" $there) $namespace) -}}
{{- end -}}
{{- end -}}
{{- else -}}
{{- range (lookup "rbac.authorization.k8s.io/v1" "RoleBinding" "" "").items -}}
{{- if and (eq .metadata.name $claim) (ne (include "fairlead.isOwn" (list $ .)) "true") -}}
{{- fail (printf "%s works in namespace %q already. Two operators on the same resources undo each other's work: set watchNamespaces here to other ones, or uninstall it. (checkOtherReleases: false skips this look)" (include "fairlead.releaseOf" .) .metadata.namespace) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "fairlead.isOwn" -}}
{{- $root := index . 0 -}}
{{- $annotations := default dict (index . 1).metadata.annotations -}}
{{- and (eq (default "" (get $annotations "meta.helm.sh/release-name")) $root.Release.Name) (eq (default "" (get $annotations "meta.helm.sh/release-namespace")) $root.Release.Namespace) -}}
{{- end -}}

{{- define "fairlead.releaseOf" -}}
{{- $annotations := default dict .metadata.annotations -}}
{{- with get $annotations "meta.helm.sh/release-name" -}}
{{- printf "release %q in namespace %q" . (default "" (get $annotations "meta.helm.sh/release-namespace")) -}}
{{- else -}}
another installation of Fairlead
{{- end -}}
{{- end -}}

{{/* A namespace that is not there is found out before anything is written. That of
the release may be made with it. Without a cluster there is none at all. */}}
{{- define "fairlead.checkNamespaces" -}}
{{- if and .Values.watchNamespaces (lookup "v1" "Namespace" "" "kube-system") -}}
{{- range $namespace := .Values.watchNamespaces -}}
{{- if and (ne $namespace $.Release.Namespace) (not (lookup "v1" "Namespace" "" $namespace)) -}}
{{- fail (printf "watchNamespaces has %q, and there is no such namespace: make it first, or leave it out. (checkOtherReleases: false skips this look)" $namespace) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Old and new Pods of an upgrade share the lease, or the old ones go first. A
Deployment of another name is deleted when the new one is there. */}}
{{- define "fairlead.checkHandover" -}}
{{- $name := include "fairlead.fullname" . -}}
{{- $recreated := eq (include "fairlead.strategy" . | fromYaml).type "Recreate" -}}
{{- $lease := printf "--leader-elect-name=%s" (include "fairlead.leaseName" .) -}}
{{- range (lookup "apps/v1" "Deployment" .Release.Namespace "").items -}}
{{- if and (eq (include "fairlead.isOwn" (list $ .)) "true") (not (and $recreated (eq .metadata.name $name))) -}}
{{- $deployment := .metadata.name -}}
{{- range .spec.template.spec.containers -}}
{{- if and (eq .name "operator") (not (and $.Values.leaderElection.enabled (has "--leader-elect=true" .args) (has $lease .args))) -}}
{{- if ne $deployment $name -}}
{{- fail (printf "the Deployment would be named %s, and is %s: the old and the new operator would work at once, by different leases. Name it as before, or uninstall the release and install it again, which leaves every DorisCluster as it is" $name $deployment) -}}
{{- end -}}
{{- fail (printf "the operator that runs does not share the lease %s: in a rolling update the old and the new one would work at once. Set strategy.type to Recreate for this upgrade" (trimPrefix "--leader-elect-name=" $lease)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
