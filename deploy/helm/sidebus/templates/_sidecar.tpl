{{/*
What a pod needs to have a sidecar. Your chart names this one as a dependency and includes:
  sidebus.container            an entry of initContainers: a native sidecar
  sidebus.volume               an entry of volumes
  sidebus.podLabels            labels of the pod
  sidebus.appEnv               entries of env of your container
  sidebus.appVolumeMounts      entries of volumeMounts of your container
  sidebus.serviceAccountName   serviceAccountName of the pod
each with the context .Subcharts.sidebus.
*/}}

{{- define "sidebus.image" -}}
{{- $tag := .Values.image.tag | default .Chart.AppVersion -}}
{{ .Values.image.repository }}:{{ $tag }}{{ with .Values.image.digest }}@{{ . }}{{ end }}
{{- end }}

{{- define "sidebus.store" -}}
{{- $store := .Values.store -}}
{{- $mode := $store.mode -}}
{{- $addresses := $store.addresses -}}
{{- if and .Values.redis.enabled (not $addresses) -}}
  {{- $mode = .Values.redis.mode -}}
  {{- $name := .Values.redis.name -}}
  {{- if eq $mode "sentinel" -}}
    {{- range $i := until 3 }}{{ $addresses = append $addresses (printf "%s-sentinel-%d.%s-sentinel:26379" $name $i $name) }}{{ end -}}
  {{- else if eq $mode "cluster" -}}
    {{- range $i := until 3 }}{{ $addresses = append $addresses (printf "%s-%d.%s:6379" $name $i $name) }}{{ end -}}
  {{- else -}}
    {{- $addresses = list (printf "%s:6379" $name) -}}
  {{- end -}}
{{- end -}}
{{- if not $addresses }}{{ fail "set store.addresses, or redis.enabled for a trial" }}{{ end -}}
{{- if and (eq $mode "single") (gt (len $addresses) 1) }}{{ fail "store.mode single has one address" }}{{ end -}}
{{- $scheme := ternary "rediss" "redis" $store.tls -}}
{{- $user := $store.username | empty | ternary "" (printf "%s@" ($store.username | urlquery)) -}}
{{- if eq $mode "sentinel" -}}
{{ $scheme }}+sentinel://{{ $user }}{{ join "," $addresses }}/{{ $store.master }}/{{ $store.database }}
{{- else if eq $mode "cluster" -}}
{{ $scheme }}+cluster://{{ $user }}{{ join "," $addresses }}
{{- else -}}
{{ $scheme }}://{{ $user }}{{ first $addresses }}/{{ $store.database }}
{{- end -}}
{{- end }}

{{/* How a container finds Redis: entries of env. */}}
{{- define "sidebus.storeEnv" -}}
{{- $secret := .Values.store.passwordSecret.name | default (ternary .Values.redis.name "" .Values.redis.enabled) -}}
- name: SIDEBUS_STORE
  value: {{ include "sidebus.store" . | quote }}
{{- with $secret }}
- name: SIDEBUS_REDIS_PASSWORD
  valueFrom:
    secretKeyRef: {name: {{ . }}, key: {{ $.Values.store.passwordSecret.key }}}
{{- end }}
- name: SIDEBUS_NAMESPACE
  value: {{ .Values.namespace | quote }}
{{- end }}

{{- define "sidebus.container" -}}
name: sidebus
image: {{ include "sidebus.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
# An init container that keeps running: it starts before the application, ends after it, and does not keep a Job from
# completing.
restartPolicy: Always
args: [serve]
env:
  {{- include "sidebus.storeEnv" . | nindent 2 }}
  - name: SIDEBUS_DRAIN_TIMEOUT
    value: {{ .Values.sidecar.drainTimeout }}
  - name: SIDEBUS_REDIS_POOL_SIZE
    value: {{ .Values.sidecar.redisPoolSize | quote }}
  # A socket takes less processor time than TCP on loopback. The HTTP API stays at 127.0.0.1:7420.
  - name: SIDEBUS_GRPC_ADDR
    value: unix://{{ .Values.sidecar.socketDir }}/grpc
  # Probes and metrics for the kubelet and Prometheus, on all addresses of the pod. The HTTP API, and the admin address
  # with settings and drain, stay on loopback.
  - name: SIDEBUS_PROBE_ADDR
    value: :7423
  {{- with .Values.sidecar.env }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
ports:
  - {name: probes, containerPort: 7423}
# The application starts once this has succeeded: Redis was reached and is fit.
startupProbe:
  httpGet: {path: /startup, port: probes}
  periodSeconds: 1
  failureThreshold: 60
readinessProbe:
  httpGet: {path: /readiness, port: probes}
  periodSeconds: 5
# Only the process itself: a Redis that is down must not restart all sidecars.
livenessProbe:
  httpGet: {path: /liveness, port: probes}
  periodSeconds: 10
  failureThreshold: 3
lifecycle:
  preStop:
    # Runs when the pod begins to end, while the application still works: no new messages from now on, those that it
    # holds can still be settled.
    exec:
      command: [/sidebus, drain]
volumeMounts:
  - {name: sidebus, mountPath: {{ .Values.sidecar.socketDir }}}
  {{- with .Values.sidecar.volumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
resources:
  {{- toYaml .Values.sidecar.resources | nindent 2 }}
securityContext:
  runAsUser: 65532
  runAsNonRoot: true
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end }}

{{- define "sidebus.volume" -}}
name: sidebus
emptyDir: {medium: Memory, sizeLimit: 1Mi}
{{- end }}

{{- define "sidebus.podLabels" -}}
redis-client: "true"
{{- end }}

{{- define "sidebus.appEnv" -}}
- name: SIDEBUS_GRPC_ADDR # the Go client uses it
  value: unix://{{ .Values.sidecar.socketDir }}/grpc
- name: SIDEBUS_URL
  value: http://127.0.0.1:7420
{{- end }}

{{- define "sidebus.appVolumeMounts" -}}
- {name: sidebus, mountPath: {{ .Values.sidecar.socketDir }}}
{{- end }}

{{- define "sidebus.serviceAccountName" -}}
{{ .Values.serviceAccount.name }}
{{- end }}
