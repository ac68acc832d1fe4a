{{- define "shellfleet.fullname" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "shellfleet.sessionsNamespace" -}}
{{ .Values.sessions.namespace | default .Release.Namespace }}
{{- end }}

{{- define "shellfleet.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "shellfleet.labels" -}}
{{ include "shellfleet.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end }}

{{- /* Every session Pod has this label; objects of the chart have `Helm` in its place. */ -}}
{{- define "shellfleet.sessionSelector" -}}
app.kubernetes.io/managed-by: shellfleet
{{- end }}

{{- define "shellfleet.image" -}}
{{- if .image.digest }}{{ .image.repository }}@{{ .image.digest }}
{{- else }}{{ .image.repository }}:{{ .image.tag | default .root.Chart.AppVersion }}{{ end }}
{{- end }}

{{- define "shellfleet.redisSecret" -}}
{{ .Values.redis.existingSecret.name | default (printf "%s-redis" (include "shellfleet.fullname" .)) }}
{{- end }}

{{- define "shellfleet.redisKey" -}}
{{ .Values.redis.existingSecret.name | empty | ternary "url" .Values.redis.existingSecret.key }}
{{- end }}

{{- define "shellfleet.sealSecret" -}}
{{ .Values.sealKeys.existingSecret.name | default (printf "%s-keys" (include "shellfleet.fullname" .)) }}
{{- end }}

{{- define "shellfleet.sealKey" -}}
{{ .Values.sealKeys.existingSecret.name | empty | ternary "seal-key" .Values.sealKeys.existingSecret.key }}
{{- end }}

{{- define "shellfleet.hasScaleToken" -}}
{{- $keda := .Values.scaling.keda }}
{{- if or (and $keda.enabled (eq $keda.source "workers")) .Values.scaling.existingSecret.name }}yes{{ end }}
{{- end }}

{{- define "shellfleet.scaleSecret" -}}
{{ .Values.scaling.existingSecret.name | default (printf "%s-scale" (include "shellfleet.fullname" .)) }}
{{- end }}

{{- define "shellfleet.scaleKey" -}}
{{ .Values.scaling.existingSecret.name | empty | ternary "token" .Values.scaling.existingSecret.key }}
{{- end }}
