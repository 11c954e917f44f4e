{{- define "shopward.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "shopward.selector" -}}
app.kubernetes.io/name: shopward
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "shopward.image" -}}
{{- with .Values.image }}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{- define "shopward.list" -}}
{{- .Values.protectedResources.configMap | default (printf "%s-list" (include "shopward.name" .)) }}
{{- end }}
