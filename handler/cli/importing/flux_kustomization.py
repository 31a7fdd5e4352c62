"""Flux' `Kustomization` -> a target: a path of a repository, built by kustomize. Pure."""

from __future__ import annotations

import posixpath

from handler.cli.importing.custom_resource import CustomResource, Lost, Rows, SourceField
from handler.cli.importing.flux_order import take_order
from handler.cli.importing.flux_settings import put_cluster_identity, put_health_checks, put_ignore, taken_duration
from handler.cli.importing.flux_sources import POLLED, git_part, put_suspend
from handler.cli.importing.references import References
from handler.cli.importing.target_draft import HOME_CLUSTER, NotATarget, TargetDraft, complaint
from handler.config.setting_rules import variables_are_texts
from handler.config.settings_shape import Json
from handler.model.advice import advice
from handler.model.manifest import canonical

RETRIED = "a failed run is tried again by itself, from 15 s doubling to 5 min"
NOT_DELETED = "a target that leaves anneal.yaml deletes nothing; to delete, let git declare nothing (prune: {allowEmpty: true}) first"
AGE_KEYS = "age.agekey"
_AGE = f"write its key that ends in .agekey, if it isn't {AGE_KEYS}; PGP keys and tokens in it are never used"
_IDENTITY = "names no age keys: list what opens the files, decryption: {kms: [ARN]} or {age: [{file: /etc/anneal/age.txt}]}"
_MAC = "a file whose MAC is another is refused, which Flux lets pass: decryption: {mac: ignore} does"
_BUILD = "is written into the cluster alone; write it into the kustomization.yaml below the path"

ROWS: Rows = {
    "interval": POLLED,
    "retryInterval": RETRIED,
    "validation": "the API server validates before the first write",
    "sourceRef.apiVersion": "says nothing beyond the kind",
    "force": Lost("names no kinds; name them: recreate: {kinds: [Deployment.apps]}; finished Jobs may always be made anew"),
    "patches": Lost(f"{_BUILD}: patches", halts=True),
    "patchesStrategicMerge": Lost(f"{_BUILD}: patches", halts=True),
    "patchesJson6902": Lost(f"{_BUILD}: patches", halts=True),
    "images": Lost(f"{_BUILD}: images", halts=True),
    "components": Lost(f"{_BUILD}: components", halts=True),
    "ignoreMissingComponents": Lost("a component that is missing fails the render; remove it from kustomization.yaml"),
    "namePrefix": Lost(f"{_BUILD}: namePrefix", halts=True),
    "nameSuffix": Lost(f"{_BUILD}: nameSuffix", halts=True),
    "commonMetadata": Lost(f"{_BUILD}: labels, commonAnnotations", halts=True),
    "buildMetadata": Lost(f"{_BUILD}: buildMetadata"),
}


def kustomization(source: CustomResource, references: References) -> list[TargetDraft]:
    """Return its target. Raises NotATarget: its source isn't git, or is missing."""
    spec = source.fields.at("spec")
    draft = TargetDraft([source], name=source.name)
    draft.add(_git(source, spec.at("sourceRef"), references))
    draft.put("renderer", {"type": "kustomize", "generate": True})
    _put_path(draft, spec.at("path"))
    _put_namespaces(draft, spec.at("targetNamespace"))
    put_post_build(draft, spec.at("postBuild"))
    put_cluster_identity(draft, spec, source.namespace)
    draft.put("adopt", ["flux"])
    draft.take(spec.at("prune"), "prune.enabled", spec.at("prune").flag())
    _put_wait(draft, spec)
    _put_decryption(draft, spec.at("decryption"), source.namespace)
    put_health_checks(draft, spec.at("healthCheckExprs"))
    put_ignore(draft, spec.at("ignore"))
    put_ignore(draft, spec.at("driftIgnoreRules"))
    put_suspend(draft, spec)
    _put_deletion(spec.at("deletionPolicy"))
    take_order(draft, spec, references)
    spec.rows(ROWS)
    return [draft]


def _git(source: CustomResource, ref: SourceField, references: References) -> TargetDraft:
    kind = ref.at("kind").text() or "GitRepository"
    if kind != "GitRepository":
        raise NotATarget(
            f"takes its manifests from {kind} objects; a target renders from git: let it follow the repository they are made of"
        )
    found = references.find(kind, ref.at("namespace").text() or source.namespace, ref.at("name").text(), source)
    for key in ("kind", "name", "namespace"):
        ref.at(key).set("repository", str(found))
    return references.part(found, git_part)


def _put_path(draft: TargetDraft, path: SourceField) -> None:
    inside = posixpath.normpath("/" + path.text()).lstrip("/")
    if not draft.take(path, "path", inside, "path"):
        raise NotATarget("has a path that can't be written in a configuration")


def _put_namespaces(draft: TargetDraft, found: SourceField) -> None:
    name = found.text()
    draft.put("clusterScoped", ["Namespace"])
    if not name or complaint("namespace", name):
        found.lost("isn't a namespace", halts=True)
        draft.put("namespaces", "*")
        return
    draft.put("namespaces", [name])
    draft.take(found, "namespace", name, "namespace", "and `namespaces`: it touches no other")
    found.lost("doesn't override a namespace that an object names; write `namespace:` into kustomization.yaml where objects do")


def _put_wait(draft: TargetDraft, spec: SourceField) -> None:
    """Wait for health where Flux does: for all, or for what it lists, which is among all."""
    checks, wait = spec.at("healthChecks"), spec.at("wait")
    limit = taken_duration(spec.at("timeout"))
    if wait.flag() or checks.items():
        draft.put("wait", {"timeout": limit} if limit else {})
        if wait.flag():
            wait.set("wait")
        spec.at("timeout").set("wait.timeout")
        checks.set("wait", "waits for all objects, those among them")
    if not wait.flag():
        wait.itself("nothing waits for health unless it is written")
    if "wait" not in draft.settings:
        spec.at("timeout").itself("without `wait` there is nothing to time")
        checks.itself("lists nothing")


def _put_decryption(draft: TargetDraft, found: SourceField, namespace: str) -> None:
    """Take over the Secret of age keys; which of its keys holds them is written nowhere, so Flux' usual name stands for it."""
    provider, name = found.at("provider"), found.below("secretRef.name")
    if provider.text() not in ("", "sops"):
        provider.lost("is no provider that is known", halts=True)
    elif name.text():
        held = f"{namespace}/{name.text()}/{AGE_KEYS}"
        if draft.take(name, "decryption.age", [{"kubernetesSecret": held}], text=f"{_AGE}; {HOME_CLUSTER}"):
            provider.set("decryption", _MAC)
    elif found:
        provider.lost(_IDENTITY, halts=True)
    account = found.at("serviceAccountName")
    if account.text():
        account.lost(_IDENTITY, halts=not name.text())


def _put_deletion(policy: SourceField) -> None:
    if policy.text() in ("", "Orphan"):
        policy.itself("a target that leaves anneal.yaml deletes nothing")
    else:
        policy.lost(NOT_DELETED)


_SETTING = "postBuild"


def put_post_build(draft: TargetDraft, found: SourceField) -> None:
    """Write a target's variables, whose objects Flux reads in its own namespace, a target in its `namespace`.

    A strategy that isn't written is Flux' default, which leaves out what nothing names.
    """
    if not found.mapping():
        found.itself("is empty")
        return
    values, strategy = found.at("substitute"), found.at("substituteStrategy")
    faults = list(variables_are_texts(Json(canonical(values.mapping()).decode())))
    if faults:
        values.lost(f"{faults[0].message}; {faults[0].fix}", halts=True)
    elif values.mapping():
        draft.take(values, f"{_SETTING}.substitute", values.mapping())
    rows = [row for entry in found.at("substituteFrom").items() if (row := _source(draft, entry))]
    if rows:
        draft.put(f"{_SETTING}.substituteFrom", rows)
    if strategy.text() not in ("", "WithVariables", "Always"):
        strategy.lost("isn't one of WithVariables, Always", halts=True)
    elif _SETTING in draft.settings or strategy.text() == "Always":
        draft.put(f"{_SETTING}.substituteStrategy", strategy.text() or "WithVariables")
    strategy.set(f"{_SETTING}.substituteStrategy", "Strict refuses a name that isn't known")


def _source(draft: TargetDraft, entry: SourceField) -> dict[str, object]:
    namespace, kind, name = draft.sources[0].namespace, entry.at("kind").text(), entry.at("name").text()
    wrong = complaint("objectName", name) if kind in ("ConfigMap", "Secret") and name else "needs a kind, ConfigMap or Secret, and a name"
    if wrong:
        entry.lost(wrong, halts=True)
        return {}
    ours = draft.settings.setdefault("namespace", namespace)
    if ours != namespace:
        way = advice("copy it there: kubectl get {} -n {} -o yaml prints it", f"{kind}/{name}", namespace)
        entry.lost(f"is in namespace {namespace}, and variables are read in the target's, {ours}; {way}", halts=True)
    for key in ("kind", "name", "optional"):
        entry.at(key).set(f"{_SETTING}.substituteFrom")
    return {"kind": kind, "name": name, **({"optional": True} if entry.at("optional").flag() else {})}
