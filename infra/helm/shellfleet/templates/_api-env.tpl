{{- define "shellfleet.apiHosts" -}}
{{- $service := printf "%s-api" (include "shellfleet.fullname" .) }}
{{- $inside := printf "%s.%s" $service .Release.Namespace }}
{{- $names := list $service $inside (printf "%s.svc" $inside) (printf "%s.svc.cluster.local" $inside) }}
{{- with .Values.api.ingress }}{{ if .enabled }}{{ $names = append $names .host }}{{ end }}{{ end }}
{{- concat $names .Values.api.allowedHosts | uniq | join "," }}
{{- end }}

{{- define "shellfleet.apiEnv" -}}
- name: SHELLFLEET_REDIS_URL
  valueFrom:
    secretKeyRef: { name: {{ include "shellfleet.redisSecret" . }}, key: {{ include "shellfleet.redisKey" . }} }
- name: SHELLFLEET_SEAL_KEY
  valueFrom:
    secretKeyRef: { name: {{ include "shellfleet.sealSecret" . }}, key: {{ include "shellfleet.sealKey" . }} }
{{- $api := .Values.api }}
{{- $settings := dict
  "HOME" "/tmp"
  "SHELLFLEET_API_ALLOWED_HOSTS" (include "shellfleet.apiHosts" .)
  "SHELLFLEET_API_HOST" "::"
  "SHELLFLEET_API_METRICS_HOST" "::"
  "SHELLFLEET_API_METRICS_PORT" (toString .Values.metrics.port)
  "SHELLFLEET_API_PORT" (toString $api.port)
  "SHELLFLEET_LOG_LEVEL" $api.logLevel
  "SHELLFLEET_NAMESPACE" .Values.fleet.namespace }}
{{- if $api.tls.secretName }}
{{- $_ := set $settings "SHELLFLEET_API_TLS_CERT" "/etc/shellfleet-tls/tls.crt" }}
{{- $_ := set $settings "SHELLFLEET_API_TLS_KEY" "/etc/shellfleet-tls/tls.key" }}
{{- else }}
{{- $_ := set $settings "SHELLFLEET_API_INSECURE_HTTP" "1" }}
{{- end }}
{{- with $api.corsOrigins }}{{ $_ := set $settings "SHELLFLEET_API_CORS_ORIGINS" (join "," .) }}{{ end }}
{{- with $api.rateLimit }}{{ $_ := set $settings "SHELLFLEET_API_RATE_LIMIT" (toString .) }}{{ end }}
{{- with $api.oidc.issuer }}
{{- $_ := set $settings "SHELLFLEET_OIDC_ISSUER" . }}
{{- $_ := set $settings "SHELLFLEET_OIDC_AUDIENCE" $api.oidc.audience }}
{{- with $api.oidc.tenant }}{{ $_ := set $settings "SHELLFLEET_OIDC_TENANT" . }}{{ end }}
{{- with $api.oidc.tenantClaim }}{{ $_ := set $settings "SHELLFLEET_OIDC_TENANT_CLAIM" . }}{{ end }}
{{- end }}
{{- range $name, $value := merge $settings $api.env }}
- { name: {{ $name }}, value: {{ $value | toString | quote }} }
{{- end }}
{{- end }}
