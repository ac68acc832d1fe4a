{{- /* The section `kubernetes` of the workers' configuration file. */ -}}
{{- define "shellfleet.kubernetesSection" -}}
{{- $s := .Values.sessions }}
{{- $workspace := dict "type" $s.workspace.type "sizeBytes" (int64 $s.workspace.sizeBytes) }}
{{- if $s.workspace.storageClass }}{{ $_ := set $workspace "storageClass" $s.workspace.storageClass }}{{ end }}
{{- $section := dict
  "namespace" (include "shellfleet.sessionsNamespace" .)
  "port" (int64 $s.port)
  "keeper" (dict "image" (include "shellfleet.image" (dict "root" . "image" $s.keeper)) "volume" $s.keeper.volume)
  "pullPolicy" $s.pullPolicy
  "serviceAccount" (printf "%s-session" (include "shellfleet.fullname" .))
  "lease" (include "shellfleet.fullname" .)
  "pullSecrets" $s.pullSecrets
  "nodeSelector" $s.nodeSelector
  "tolerations" $s.tolerations
  "runtimeClasses" $s.runtimeClasses
  "userNamespaces" $s.userNamespaces
  "workspace" $workspace
  "ephemeralStorageBytes" (int64 $s.ephemeralStorageBytes)
  "resources" $s.resources
  "unenforced" $s.unenforced
  "probes" $s.probes }}
{{- if $s.priorityClass }}{{ $_ := set $section "priorityClass" $s.priorityClass }}{{ end }}
{{- if $s.podPidsLimit }}{{ $_ := set $section "podPidsLimit" (int64 $s.podPidsLimit) }}{{ end }}
{{- if .Values.egressProxy.enabled }}
{{- $host := printf "%s-egress.%s.svc" (include "shellfleet.fullname" .) .Release.Namespace }}
{{- $_ := set $section "egress" (dict "host" $host "port" (int64 .Values.egressProxy.port)) }}
{{- end }}
{{- toYaml $section }}
{{- end }}

{{- define "shellfleet.configuration" -}}
{{- $allow := merge (dict "networks" .Values.sessions.networks "hosts" .Values.sessions.hosts) (.Values.config.allow | default dict) }}
{{- $sections := dict "allow" $allow "kubernetes" (include "shellfleet.kubernetesSection" . | fromYaml) }}
{{- toYaml (merge $sections (omit .Values.config "allow")) }}
{{- end }}
