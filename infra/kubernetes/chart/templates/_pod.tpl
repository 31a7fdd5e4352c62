{{- /* The pod of a component. Given: a list of the root, the component, and its name and args. */ -}}
{{- define "anneal.pod" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $part := index . 2 -}}
{{- with $root.Values -}}
serviceAccountName: {{ include "anneal.account" $root | quote }}
automountServiceAccountToken: true
enableServiceLinks: false
terminationGracePeriodSeconds: {{ .terminationGracePeriodSeconds | int }}
{{- with .priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . | quote }}
  {{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile:
    type: RuntimeDefault
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "anneal.selector" (list $root $component) | nindent 8 }}
    matchLabelKeys:
      - pod-template-hash
containers:
  - name: anneal
    {{- $tag := .image.tag | default $root.Chart.AppVersion }}
    {{- $version := empty .image.digest | ternary (printf ":%s" $tag) (printf "@%s" .image.digest) }}
    image: {{ printf "%s%s" .image.repository $version | quote }}
    imagePullPolicy: {{ .image.pullPolicy | quote }}
    args:
      {{- toYaml $part.args | nindent 6 }}
    env:
      - name: ANNEAL_CONFIG
        value: /etc/anneal/anneal.yaml
      - name: POD_NAMESPACE
        valueFrom:
          fieldRef:
            fieldPath: metadata.namespace
      - name: ANNEAL_WORKLOAD
        value: {{ printf "$(POD_NAMESPACE)/%s" $part.name | quote }}
      {{- with .env }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
    {{- if eq $component "door" }}
    {{- include "anneal.door" $root | nindent 4 }}
    {{- else }}
    {{- include "anneal.worker" $root | nindent 4 }}
    {{- end }}
    resources:
      {{- toYaml .resources | nindent 6 }}
    securityContext:
      allowPrivilegeEscalation: false
      privileged: false
      readOnlyRootFilesystem: true
      capabilities:
        drop:
          - ALL
    volumeMounts:
      - name: config
        mountPath: /etc/anneal
        readOnly: true
      {{- if .secret }}
      - name: secrets
        mountPath: /etc/anneal-secrets
        readOnly: true
      {{- end }}
      - name: tmp
        mountPath: /tmp
volumes:
  - name: config
    configMap:
      name: {{ include "anneal.config" $root | quote }}
  {{- with .secret }}
  - name: secrets
    secret:
      secretName: {{ . | quote }}
      defaultMode: 288
  {{- end }}
  - name: tmp
    emptyDir:
      medium: Memory
      sizeLimit: {{ .tmpSize | quote }}
{{- end -}}
{{- end -}}

{{- /* What listens, and how it is asked whether it stands. */ -}}
{{- define "anneal.door" -}}
ports:
  - name: http
    containerPort: 8080
    protocol: TCP
  - name: metrics
    containerPort: 9090
    protocol: TCP
startupProbe:
  httpGet:
    path: /readyz
    port: http
  periodSeconds: 2
  failureThreshold: 60
readinessProbe:
  httpGet:
    path: /healthz
    port: http
  periodSeconds: 5
  timeoutSeconds: 3
livenessProbe:
  httpGet:
    path: /healthz
    port: http
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
lifecycle:
  preStop:
    sleep:
      seconds: 3
{{- end -}}

{{- /* The same of a worker: its process answers for its metrics, where metrics.bind says. */ -}}
{{- define "anneal.worker" -}}
ports:
  - name: metrics
    containerPort: 9090
    protocol: TCP
readinessProbe:
  httpGet:
    path: /metrics
    port: metrics
  periodSeconds: 5
  timeoutSeconds: 5
livenessProbe:
  httpGet:
    path: /metrics
    port: metrics
  periodSeconds: 20
  timeoutSeconds: 5
  failureThreshold: 6
{{- end -}}
