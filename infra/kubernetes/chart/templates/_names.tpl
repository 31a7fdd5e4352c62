{{- /* A Service's name: letters, digits and dashes; a letter begins it, and no dash ends it (RFC 1035). */ -}}
{{- define "anneal.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride }}
{{- else -}}
{{- $name := .Release.Name | replace "." "-" -}}
{{- if not (regexMatch "^[a-z]" $name) -}}
{{- $name = printf "anneal-%s" $name -}}
{{- else if not (contains "anneal" $name) -}}
{{- $name = printf "%s-anneal" ($name | trunc 43 | trimAll "-") -}}
{{- end -}}
{{ $name | trunc 50 | trimAll "-" }}
{{- end -}}
{{- end -}}

{{- define "anneal.account" -}}
{{ .Values.serviceAccount.name | default (include "anneal.fullname" .) }}
{{- end -}}

{{- /* What selects pods never changes. Given: a list of the root and the component, empty for none. */ -}}
{{- define "anneal.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: anneal
app.kubernetes.io/instance: {{ $root.Release.Name | quote }}
{{- with index . 1 }}
app.kubernetes.io/component: {{ . | quote }}
{{- end }}
{{- end -}}

{{- /* No label says by which form or version the objects were made: moving from one to another changes none of them. */ -}}
{{- define "anneal.labels" -}}
{{ include "anneal.selector" . }}
app.kubernetes.io/part-of: anneal
{{- end -}}

{{- /* Not anneal-*: such ConfigMaps of its state namespace are Anneal's own records, which no target may declare.
Behind it the digits that kustomize's configMapGenerator appends: of the content's SHA-256, in its own alphabet; the name isn't hashed. */ -}}
{{- define "anneal.config" -}}
{{- $name := printf "config-%s" (include "anneal.fullname" .) -}}
{{- $content := dict "kind" "ConfigMap" "name" "" "data" (dict "anneal.yaml" .Values.config) | toJson -}}
{{- $digits := $content | sha256sum | trunc 10 | replace "0" "g" | replace "1" "h" | replace "3" "k" | replace "a" "m" | replace "e" "t" -}}
{{ $name }}-{{ $digits }}
{{- end -}}
