{{/* What every object of this release is named by. */}}
{{- define "gatehouse.labels" -}}
app.kubernetes.io/name: gatehouse
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "gatehouse.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{/* gatehouse.yml with this revision as its version, unless it has one: at the end, so that messages name its lines as they are. */}}
{{- define "gatehouse.policy" -}}
{{ .Values.policy }}
{{- if not (regexMatch "(?m)^(version:|[{])" .Values.policy) }}
version: {{ .Release.Revision }}
{{ end -}}
{{- end }}

{{- define "gatehouse.serviceAccount" -}}
{{ .Values.serviceAccount.name | default .Release.Name }}
{{- end }}

{{/* What selects the pods of one role. Takes root and role. */}}
{{- define "gatehouse.selector" -}}
app.kubernetes.io/name: gatehouse
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .role }}
{{- end }}

{{/* Of the pods. A changed policy or variable replaces the processes one by one; where the operator scrapes, nothing else needs to. */}}
{{- define "gatehouse.podAnnotations" -}}
{{- $scraped := dict "prometheus.io/scrape" "true" "prometheus.io/port" "3001" -}}
{{- if .Values.monitoring.podMonitor -}}
{{- $scraped = dict -}}
{{- end -}}
{{- $checksums := dict "checksum/policy" (.Values.policy | sha256sum) "checksum/settings" (.Values.settings | toYaml | sha256sum) -}}
{{- merge $checksums .Values.podAnnotations $scraped | toYaml -}}
{{- end }}

{{/* One role: its disks, its service, and its budget. Takes root, role, of (its values), entry (the secret that lets deliveries in), and, of a gateway, api. */}}
{{- define "gatehouse.process" -}}
{{- $name := printf "%s-%s" .root.Release.Name .role -}}
{{- $ready := "ops" -}}
{{- with .api -}}
{{- if .enabled -}}
{{- $ready = "api" -}}
{{- end -}}
{{- end -}}
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: {{ $name }}
  labels:
    {{- include "gatehouse.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .role }}
spec:
  serviceName: {{ $name }}
  replicas: {{ .of.replicas }}
  podManagementPolicy: Parallel
  selector:
    matchLabels: &labels
      {{- include "gatehouse.selector" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "gatehouse.selector" . | nindent 8 }}
        {{- with .root.Values.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      annotations:
        {{- include "gatehouse.podAnnotations" .root | nindent 8 }}
    spec:
      serviceAccountName: {{ include "gatehouse.serviceAccount" .root }}
      automountServiceAccountToken: false # it asks nothing of Kubernetes
      enableServiceLinks: false
      terminationGracePeriodSeconds: 20 # Gatehouse stops within 10 s
      {{- with .root.Values.image.pullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .root.Values.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .root.Values.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .root.Values.affinity }}
      affinity:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .root.Values.priorityClassName }}
      priorityClassName: {{ . | quote }}
      {{- end }}
      {{- with .root.Values.podSecurityContext }}
      securityContext:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .root.Values.topologySpreadConstraints }}
      topologySpreadConstraints:
        {{- range . }}
        -
          {{- toYaml . | nindent 10 }}
          {{- if not .labelSelector }}
          labelSelector: { matchLabels: *labels }
          {{- end }}
        {{- end }}
      {{- end }}
      containers:
        - name: {{ .role }}
          image: {{ include "gatehouse.image" .root | quote }}
          imagePullPolicy: {{ .root.Values.image.pullPolicy }}
          args: [{{ .role }}]
          envFrom:
            - configMapRef: { name: {{ .root.Release.Name }}-settings }
          env:
            - { name: GATEHOUSE_CONFIG, value: /config/gatehouse.yml }
            - { name: DATA_DIR, value: /data }
            - { name: OPS_HOST, value: "::" }
            - { name: OPS_PORT, value: "3001" }
            - { name: SLACK_BOT_TOKEN_FILE, value: /run/secrets/gatehouse/slack-bot-token }
            - { name: COMPUTE_API_KEY_FILE, value: /run/secrets/gatehouse/compute-api-key }
            - { name: REDIS_URL_FILE, value: /run/secrets/gatehouse/redis-url }
            {{- if eq .entry "slack-app-token" }}
            - { name: SLACK_APP_TOKEN_FILE, value: /run/secrets/gatehouse/slack-app-token }
            {{- else if eq .entry "slack-signing-secret" }}
            - { name: SLACK_SIGNING_SECRET_FILE, value: /run/secrets/gatehouse/slack-signing-secret }
            - { name: PORT, value: "3000" }
            {{- end }}
            {{- with .api }}
            {{- if .enabled }}
            - { name: API_PORT, value: "3002" }
            {{- range $name, $key := .sources }}
            - { name: SOURCE_SECRET_{{ $name }}_FILE, value: /run/secrets/gatehouse/{{ $key }} }
            {{- end }}
            {{- end }}
            {{- end }}
            {{- with .root.Values.extraEnv }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          ports:
            - { name: ops, containerPort: 3001 }
            {{- if eq .entry "slack-signing-secret" }}
            - { name: slack, containerPort: 3000 }
            {{- end }}
            {{- with .api }}
            {{- if .enabled }}
            - { name: api, containerPort: 3002 }
            {{- end }}
            {{- end }}
          # It answers while it waits for Redis or Slack, too: not ready, but alive
          startupProbe:
            httpGet: { path: /healthz, port: ops }
            {{- toYaml .root.Values.probes.startup | nindent 12 }}
          livenessProbe:
            httpGet: { path: /healthz, port: ops }
            {{- toYaml .root.Values.probes.liveness | nindent 12 }}
          # With the API, its port says whether the API works: it does while Slack is away, too. Otherwise all must work
          readinessProbe:
            httpGet: { path: /readyz, port: {{ $ready }} }
            {{- toYaml .root.Values.probes.readiness | nindent 12 }}
          {{- with .of.resources }}
          resources:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          {{- with .root.Values.containerSecurityContext }}
          securityContext:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          volumeMounts:
            - { name: data, mountPath: /data }
            # Where gatehouse.yml may let attestation.endorsements be fetched to
            - { name: data, mountPath: /var/lib/gatehouse/endorsements, subPath: endorsements }
            - { name: policy, mountPath: /config, readOnly: true }
            - { name: secrets, mountPath: /run/secrets/gatehouse, readOnly: true }
            - { name: tmp, mountPath: /tmp }
            {{- with .root.Values.extraVolumeMounts }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
      volumes:
        - name: policy
          configMap: { name: {{ .root.Release.Name }}-policy }
        - name: secrets
          secret:
            secretName: {{ .root.Values.secret }}
            defaultMode: 0440
            # Each role sees what it needs: what lets deliveries in is the gateways' alone
            items:
              - { key: slack-bot-token, path: slack-bot-token }
              - { key: compute-api-key, path: compute-api-key }
              - { key: redis-url, path: redis-url }
              {{- if .entry }}
              - { key: {{ .entry }}, path: {{ .entry }} }
              {{- end }}
              {{- with .api }}
              {{- if .enabled }}
              {{- range $name, $key := .sources }}
              - { key: {{ $key }}, path: {{ $key }} }
              {{- end }}
              {{- end }}
              {{- end }}
        - name: tmp
          emptyDir: { medium: Memory, sizeLimit: 16Mi }
        {{- with .root.Values.extraVolumes }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  # What this process sent, and the heads of the audit chain: they must outlive the pod, and no two pods may share them
  persistentVolumeClaimRetentionPolicy: { whenDeleted: Retain, whenScaled: Retain }
  volumeClaimTemplates:
    - metadata:
        name: data
      spec:
        accessModes: [ReadWriteOnce]
        {{- with .root.Values.data.storageClass }}
        storageClassName: {{ . }}
        {{- end }}
        resources:
          requests: { storage: {{ .root.Values.data.size }} }
---
# Names for the pods; probes and figures stay inside the cluster
apiVersion: v1
kind: Service
metadata:
  name: {{ $name }}
  labels:
    {{- include "gatehouse.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .role }}
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector:
    {{- include "gatehouse.selector" . | nindent 4 }}
  ports:
    - { name: ops, port: 3001, targetPort: ops }
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ $name }}
  labels:
    {{- include "gatehouse.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .role }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels:
      {{- include "gatehouse.selector" . | nindent 6 }}
{{- end }}
