{{- define "shellfleet.peer" -}}
- namespaceSelector: { matchLabels: { kubernetes.io/metadata.name: {{ .namespace }} } }
  podSelector:
    matchLabels: {{- .selector | nindent 6 }}
{{- end }}

{{- define "shellfleet.dns" -}}
- to:
    {{- range .namespaces }}
    - namespaceSelector: { matchLabels: { kubernetes.io/metadata.name: {{ . }} } }
    {{- end }}
    {{- range .cidrs }}
    - ipBlock: { cidr: {{ . | quote }} }
    {{- end }}
  ports:
    {{- range .ports }}
    - { protocol: UDP, port: {{ . }} }
    - { protocol: TCP, port: {{ . }} }
    {{- end }}
{{- end }}

{{- /* Every address but those of the given ranges. */ -}}
{{- define "shellfleet.outside" -}}
{{- $four := list }}{{ $six := list "fc00::/7" "fe80::/10" }}
{{- range . }}{{ if contains ":" . }}{{ $six = append $six . }}{{ else }}{{ $four = append $four . }}{{ end }}{{ end }}
- to:
    - ipBlock:
        cidr: 0.0.0.0/0
        {{- with $four }}
        except: {{- toYaml . | nindent 10 }}
        {{- end }}
    - ipBlock:
        cidr: ::/0
        except: {{- toYaml (uniq $six) | nindent 10 }}
{{- end }}

{{- define "shellfleet.addresses" -}}
- ports:
    {{- range .ports }}
    - { protocol: TCP, port: {{ . }} }
    {{- end }}
  {{- with .cidrs }}
  to:
    {{- range . }}
    - ipBlock: { cidr: {{ . | quote }} }
    {{- end }}
  {{- end }}
{{- end }}
