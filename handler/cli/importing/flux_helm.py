"""Flux' `HelmRelease` -> a target that renders a chart, from git or from elsewhere. Pure."""

from __future__ import annotations

import hashlib
import posixpath

from handler.cli.importing.custom_resource import LOST, CustomResource, Lost, Rows, SourceField
from handler.cli.importing.flux_kustomization import RETRIED
from handler.cli.importing.flux_order import take_order
from handler.cli.importing.flux_settings import put_cluster_identity, put_health_checks, put_ignore, taken_duration
from handler.cli.importing.flux_sources import POLLED, git_part, helm_repository_part, oci_repository_part, put_suspend
from handler.cli.importing.references import KUSTOMIZE, References, reading
from handler.cli.importing.target_draft import NotATarget, TargetDraft, complaint
from handler.model.advice import advice

_PUT_CRDS = "CustomResourceDefinition.apiextensions.k8s.io"
_HOOKS = Lost("hooks run in their phases; delete them from the chart, or give their objects no helm.sh/hook", halts=True)
_NO_RELEASE = "no release is stored, so there is none to act on"
_OWN_TIME = Lost("there is one time for a wait: wait.timeout")
_MADE_ANEW = Lost("names no kinds; name them: recreate: {kinds: [Deployment.apps]}")
_VALIDATES = Lost("the API server validates each object, a chart's schema its values; correct what they refuse")

ROWS: Rows = {
    "interval": POLLED,
    "storageNamespace": "the record is in `stateNamespace`, a ConfigMap",
    "maxHistory": "the record keeps the last runs",
    "persistentClient": "there is one client",
    "waitStrategy": "kstatus decides, as in helm-controller's own poller",
    "postRenderStrategy": "without post-renderers there is nothing to order",
    "postRenderers": Lost("nothing is changed after the render; write it into the chart or its values, or render by kustomize", halts=True),
    "commonMetadata": Lost("nothing is added after the render; write it into the chart's values", halts=True),
    "test": Lost("helm tests aren't run; a Rollout with checks looks at what was deployed (docs/rollouts.md)"),
    "uninstall": "nothing is uninstalled: a target that leaves anneal.yaml deletes nothing",
    "rollback": _NO_RELEASE,
    "chart.metadata": "no HelmChart is made",
    "chart.spec.interval": POLLED,
    "chart.spec.sourceRef.apiVersion": "says nothing beyond the kind",
    "chartRef.apiVersion": "says nothing beyond the kind",
    "install.disableWait": "`wait` is written unless install and upgrade both go without",
    "upgrade.disableWait": "`wait` is written unless install and upgrade both go without",
    "install.disableWaitForJobs": Lost("Jobs are among what is waited for"),
    "upgrade.disableWaitForJobs": Lost("Jobs are among what is waited for"),
    "install.replace": _NO_RELEASE,
    "install.strategy": RETRIED,
    "upgrade.strategy": RETRIED,
    "install.timeout": _OWN_TIME,
    "upgrade.timeout": _OWN_TIME,
    "install.createNamespace": Lost("declare the Namespace in git, or create it: kubectl create namespace NAME"),
    "install.disableHooks": _HOOKS,
    "upgrade.disableHooks": _HOOKS,
    "install.disableOpenAPIValidation": _VALIDATES,
    "upgrade.disableOpenAPIValidation": _VALIDATES,
    "install.disableSchemaValidation": _VALIDATES,
    "upgrade.disableSchemaValidation": _VALIDATES,
    "install.disableTakeOwnership": "what another tool owns is refused unless `adopt` names it",
    "upgrade.disableTakeOwnership": "what another tool owns is refused unless `adopt` names it",
    "install.serverSideApply": "all is applied server-side",
    "upgrade.serverSideApply": "all is applied server-side",
    "upgrade.cleanupOnFail": Lost("what a failed run made stays until the next one; see rollback: {onFailure: true}"),
    "upgrade.chartNameChangeStrategy": "a chart of another name is a commit like any other",
    "upgrade.preserveValues": Lost("values are what git and the configuration say; write them there", halts=True),
    "upgrade.force": _MADE_ANEW,
}


_NO_NAMESPACE = (
    "isn't written, and default counts; what a kustomization gives it is in what that builds: kustomize build DIR | anneal import -f -"
)


def helm_release(source: CustomResource, references: References) -> list[TargetDraft]:
    """Return its target. Raises NotATarget: its chart can't be had, or is missing, or no git repository is known."""
    spec = source.fields.at("spec")
    draft = TargetDraft([source], name=source.name)
    draft.put("renderer", {"type": "helm"})
    _put_chart(draft, source, references)
    _put_place(draft, spec)
    _put_values(draft, spec)
    put_cluster_identity(draft, spec, source.namespace)
    draft.put("adopt", ["flux", "helm"])
    _put_drift(draft, spec.at("driftDetection"))
    _put_wait(draft, spec)
    _put_crds(draft, spec)
    put_health_checks(draft, spec.at("healthCheckExprs"))
    put_suspend(draft, spec)
    take_order(draft, spec, references)
    spec.rows(ROWS)
    return [draft]


def _put_chart(draft: TargetDraft, source: CustomResource, references: References) -> None:
    spec, ref = source.fields.at("spec"), source.fields.below("spec.chartRef")
    if not ref:
        _put_template(draft, spec.below("chart.spec"), source, references)
        return
    kind, namespace = ref.at("kind").text(), ref.at("namespace").text() or source.namespace
    if kind not in ("OCIRepository", "HelmChart"):
        raise NotATarget(f"takes its chart from a {kind or 'reference without a kind'}; write renderer.chart: {{oci: …}} yourself")
    found = references.find(kind, namespace, ref.at("name").text(), source)
    for key in ("kind", "name", "namespace"):
        ref.at(key).set("renderer.chart", str(found))
    if kind == "HelmChart":
        draft.sources.append(found)
        put_suspend(draft, found.fields.at("spec"))
        found.fields.at("spec").rows({"interval": POLLED, "sourceRef.apiVersion": "says nothing beyond the kind"})
        _put_template(draft, found.fields.at("spec"), found, references)
    else:
        draft.add(_home(source, references))
        draft.add(references.part(found, oci_repository_part))


def _put_template(draft: TargetDraft, chart: SourceField, owner: CustomResource, references: References) -> None:
    """Take over a chart's name, version and source, as a HelmRelease's template and a HelmChart write them."""
    ref = chart.at("sourceRef")
    kind, name = ref.at("kind").text(), ref.at("name").text()
    if kind not in ("HelmRepository", "GitRepository"):
        raise NotATarget(f"takes its chart from a {kind or 'source without a kind'}; put the chart into git, or into a registry")
    found = references.find(kind, ref.at("namespace").text() or owner.namespace, name, owner)
    for key in ("kind", "name", "namespace"):
        ref.at(key).set("renderer.chart" if kind == "HelmRepository" else "repository", str(found))
    if kind == "HelmRepository":
        draft.add(_home(draft.sources[0], references))
        if not chart.at("chart").text() or complaint("chartName", chart.at("chart").text()):
            raise NotATarget("names no chart")
        with reading(found):
            draft.add(helm_repository_part(found, chart.at("chart").text(), chart.at("version")))
        chart.at("chart").set("renderer.chart")
    else:
        draft.add(references.part(found, git_part))
        _put_chart_path(draft, chart)
    _put_template_rest(draft, chart, in_git=kind == "GitRepository")


def _put_chart_path(draft: TargetDraft, chart: SourceField) -> None:
    inside = posixpath.normpath("/" + chart.at("chart").text()).lstrip("/")
    if not draft.take(chart.at("chart"), "path", inside, "path"):
        raise NotATarget("has a path that can't be written in a configuration")
    chart.at("version").itself("a chart in git has the version of its commit")


def _put_template_rest(draft: TargetDraft, chart: SourceField, *, in_git: bool) -> None:
    files = [*([text] if (text := chart.at("valuesFile").text()) else []), *chart.at("valuesFiles").texts()]
    written = chart.at("valuesFiles") or chart.at("valuesFile")
    if files and in_git:
        path = str(draft.settings.get("path", ""))
        relative = [posixpath.relpath("/" + each.lstrip("/"), "/" + path) for each in files]
        if draft.take(written, "renderer.valuesFiles", relative, "valuesFile", "from `path`"):
            chart.at("valuesFile").set("renderer.valuesFiles")
        if "values.yaml" not in relative:
            written.lost("the chart's own values.yaml counts, too, below these; set what it says otherwise in one of them", halts=True)
    for key in ("valuesFiles", "valuesFile"):
        if not in_git:
            chart.at(key).lost("lies in the chart; commit the file and name it in renderer.valuesFiles", halts=bool(files))
    if chart.at("reconcileStrategy").text() == "Revision" or not in_git:
        chart.at("reconcileStrategy").itself("each commit and each version counts")
    else:
        chart.at("reconcileStrategy").lost("each commit counts, whether or not it raises the chart's version")
    chart.rows(
        {
            "ignoreMissingValuesFiles": Lost("a values file that is missing fails the render; remove it from the list"),
            "verify": Lost("signatures of charts aren't verified; pin the bytes instead: renderer.chart.digest", halts=True),
        }
    )


def _home(source: CustomResource, references: References) -> TargetDraft:
    """Return the repository of a release whose chart is elsewhere: that of the Kustomization that applied it, else the only one."""
    if references.repository:
        return references.home(source, ())
    labels = source.fields.below("metadata.labels")
    name, namespace = (labels.at(f"{KUSTOMIZE}/{key}").value for key in ("name", "namespace"))
    owner = references.look("Kustomization", str(namespace), str(name), KUSTOMIZE) if name and namespace else None
    ref = owner.fields.below("spec.sourceRef") if owner else source.fields.at()
    git = references.look("GitRepository", str(ref.at("namespace").value or namespace), str(ref.at("name").value)) if owner else None
    if git:
        return references.part(git, git_part)
    return references.home(source, [references.part(each, git_part) for each in references.resources if each.kind == "GitRepository"])


def _put_place(draft: TargetDraft, spec: SourceField) -> None:
    """Take over the namespace and the release's name, which helm-controller makes of both where none is written."""
    source, target, release = draft.sources[0], spec.at("targetNamespace"), spec.at("releaseName")
    namespace = target.text() or source.namespace
    if complaint("namespace", namespace):
        raise NotATarget("has a namespace that is none")
    draft.put("namespaces", [namespace])
    draft.put("namespace", namespace)
    target.set("namespace", "and `namespaces`: it touches no other")
    if not target and not source.fields.below("metadata.namespace"):
        source.note(LOST, ("metadata", "namespace"), _NO_NAMESPACE, halts=True)
    name = release.text() or "-".join(part for part in (target.text(), source.name) if part)
    if len(name) > 53:
        name = f"{name[:40]}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"
    if complaint("releaseName", name):
        raise NotATarget("has a release name that Helm wouldn't take")
    draft.put("renderer.releaseName", name)
    release.set("renderer.releaseName")


def _put_values(draft: TargetDraft, spec: SourceField) -> None:
    values = spec.at("values")
    if values.mapping():
        draft.take(values, "renderer.values", values.mapping())
    else:
        values.itself("is empty")
    taken: list[dict[str, object]] = []
    for entry in spec.at("valuesFrom").items():
        row = _values_from(draft, entry)
        if row:
            taken.append(row)
    if taken:
        draft.put("renderer.valuesFrom", taken)


def _values_from(draft: TargetDraft, entry: SourceField) -> dict[str, object]:
    source, namespace = draft.sources[0], draft.settings["namespace"]
    names = {"kind": "kind", "name": "name", "valuesKey": "key", "targetPath": "targetPath"}
    row: dict[str, object] = {setting: text for key, setting in names.items() if (text := entry.at(key).text())}
    entry.rows({"literal": Lost("a value at targetPath is read as Helm's --set reads it", halts=True)})
    if namespace != source.namespace:
        named = f"{row.get('kind')}/{row.get('name')}"
        way = advice("copy it there: kubectl get {} -n {} -o yaml prints it", named, source.namespace)
        entry.lost(f"is in namespace {source.namespace}, and values are read in the target's, {namespace}; {way}", halts=True)
        return {}
    forms = {"name": "objectName", "key": "dataKey"}
    wrong = next((found for key, form in forms.items() if key in row and (found := complaint(form, row[key]))), "")
    if row.get("kind") not in ("ConfigMap", "Secret") or "name" not in row or wrong:
        entry.lost(wrong or "needs a kind, ConfigMap or Secret, and a name", halts=True)
        return {}
    if entry.at("optional").flag():
        row["optional"] = True
    for key in (*names, "optional"):
        entry.at(key).set("renderer.valuesFrom")
    return row


def _put_drift(draft: TargetDraft, detection: SourceField) -> None:
    mode = detection.at("mode")
    drift = {"enabled": "correct", "warn": "report"}.get(mode.text(), "ignore")
    draft.put("drift", drift)
    if mode.text() in ("", "enabled", "warn", "disabled"):
        mode.set("drift")
    else:
        mode.lost("isn't one of enabled, warn, disabled")
    put_ignore(draft, detection.at("ignore"))


def _put_wait(draft: TargetDraft, spec: SourceField) -> None:
    """Wait as Helm does, five minutes unless said otherwise; go back on failure where upgrades are remediated by a rollback."""
    limit = taken_duration(spec.at("timeout")) or "5m"
    waits = not (spec.below("install.disableWait").flag() and spec.below("upgrade.disableWait").flag())
    if waits:
        draft.put("wait", {"timeout": limit})
        spec.at("timeout").set("wait.timeout")
    else:
        spec.at("timeout").itself("nothing is waited for")
    for phase in ("install", "upgrade"):
        remediation = spec.at(phase, "remediation")
        remediation.at("retries").itself(RETRIED)
        last = remediation.at("remediateLastFailure")
        remedied = phase == "upgrade" and (last.flag() if last else remediation.at("retries").value not in (None, 0))
        strategy = remediation.at("strategy")
        if remedied and waits and strategy.text() in ("", "rollback"):
            draft.put("rollback", {"onFailure": True})
            for each in (strategy, last):
                each.set("rollback.onFailure")
        else:
            strategy.lost("a failed release is left as it is until the next commit; nothing is uninstalled")
            last.itself("a failed run is reported, and tried again")
        remediation.rows({"ignoreTestFailures": "helm tests aren't run"})


def _put_crds(draft: TargetDraft, spec: SourceField) -> None:
    crds, skip = spec.below("install.crds"), spec.below("install.skipCRDs")
    if crds.text() == "Skip" or (skip.flag() and not crds):
        draft.put("renderer.skipCrds", True)
        for each in (crds, skip):
            each.set("renderer.skipCrds")
        spec.below("upgrade.crds").lost("CRDs are in the render or aren't, whatever is installed or upgraded")
        draft.put("clusterScoped", ["Namespace"])
        return
    crds.itself("a chart's crds/ are rendered")
    skip.itself("a chart's crds/ are rendered")
    draft.put("clusterScoped", ["Namespace", _PUT_CRDS])
    if spec.below("upgrade.crds").text() == "CreateReplace":
        spec.below("upgrade.crds").itself("CRDs are applied whenever they differ")
    else:
        spec.below("upgrade.crds").lost("CRDs of a new version are applied, too; renderer.skipCrds leaves them all out")
