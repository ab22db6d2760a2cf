{{/* Ends with a sentence where values fit the schema and still can't work: a schema can't say why. */}}
{{- define "gatehouse.refuse" -}}
{{- $secrets := "^(SLACK_BOT_TOKEN|SLACK_APP_TOKEN|SLACK_SIGNING_SECRET|COMPUTE_API_KEY|REDIS_URL|OTEL_EXPORTER_OTLP_HEADERS|SOURCE_SECRET_.*)$" -}}
{{- $own := "^(GATEHOUSE_CONFIG|DATA_DIR|OPS_HOST|OPS_PORT|PORT|API_PORT|(SLACK_BOT_TOKEN|SLACK_APP_TOKEN|SLACK_SIGNING_SECRET|COMPUTE_API_KEY|REDIS_URL)_FILE)$" -}}
{{- range $name, $value := .Values.settings -}}
{{- if regexMatch $own $name -}}
{{- fail (printf "settings.%s is set by the chart itself" $name) -}}
{{- else if regexMatch $secrets $name -}}
{{- fail (printf "settings.%s is a secret, and Helm keeps values: put it into the Secret %s" $name $.Values.secret) -}}
{{- end -}}
{{- end -}}
{{- range .Values.extraEnv -}}
{{- if regexMatch $own .name -}}
{{- fail (printf "extraEnv: %s is set by the chart itself" .name) -}}
{{- end -}}
{{- end -}}
{{- range $name, $value := .Values.podLabels -}}
{{- if regexMatch "^app\\.kubernetes\\.io/(name|instance|component)$" $name -}}
{{- fail (printf "podLabels: %s is set by the chart itself" $name) -}}
{{- end -}}
{{- end -}}
{{- if .Values.http.enabled -}}
{{- if not .Values.http.host -}}
{{- fail "http.host is empty: name the host that Slack's request URL has" -}}
{{- end -}}
{{- end -}}
{{- end }}
