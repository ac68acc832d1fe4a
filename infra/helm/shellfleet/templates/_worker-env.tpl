{{- define "shellfleet.workerEnv" -}}
# The Pod is the host: a container that starts again continues with its state directory.
- name: SHELLFLEET_HOST_ID
  valueFrom: { fieldRef: { fieldPath: metadata.name } }
- name: SHELLFLEET_REDIS_URL
  valueFrom:
    secretKeyRef: { name: {{ include "shellfleet.redisSecret" . }}, key: {{ include "shellfleet.redisKey" . }} }
- name: SHELLFLEET_SEAL_KEY
  valueFrom:
    secretKeyRef: { name: {{ include "shellfleet.sealSecret" . }}, key: {{ include "shellfleet.sealKey" . }} }
{{- if include "shellfleet.hasScaleToken" . }}
- name: SHELLFLEET_SCALE_TOKEN
  valueFrom:
    secretKeyRef: { name: {{ include "shellfleet.scaleSecret" . }}, key: {{ include "shellfleet.scaleKey" . }} }
{{- end }}
{{- $settings := dict
  "HOME" "/tmp"
  "SHELLFLEET_CONFIG" "/etc/shellfleet/shellfleet.yaml"
  "SHELLFLEET_DEFAULT_IMAGE" (.Values.sessions.image | default (printf "shellfleet/session:%s" .Chart.AppVersion))
  "SHELLFLEET_LOG_LEVEL" .Values.workers.logLevel
  "SHELLFLEET_METRICS_HOST" "::"
  "SHELLFLEET_METRICS_PORT" (toString .Values.metrics.port)
  "SHELLFLEET_NAMESPACE" .Values.fleet.namespace
  "SHELLFLEET_POLICIES" "kubernetes"
  "SHELLFLEET_SLOTS" (toString .Values.workers.slots)
  "SHELLFLEET_STATE_DIR" "/var/lib/shellfleet" }}
{{- range $name, $value := merge $settings .Values.workers.env }}
- { name: {{ $name }}, value: {{ $value | toString | quote }} }
{{- end }}
{{- end }}
