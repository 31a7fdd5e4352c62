"""Argo CD's `Application` -> targets: where to, how it is kept in sync, and what others may own. Pure."""

from __future__ import annotations

from typing import Any

from handler.cli.importing.argocd_parameters import pointer_of
from handler.cli.importing.argocd_sources import parts_of
from handler.cli.importing.custom_resource import SET, CustomResource, Lost, Rows, SourceField
from handler.cli.importing.flux_kustomization import RETRIED
from handler.cli.importing.references import References
from handler.cli.importing.target_draft import TargetDraft, complaint, judged
from handler.model.tree import printable

_OWN_CLUSTER = ("https://kubernetes.default.svc", "https://kubernetes.default.svc.cluster.local")
_MANUAL = "is synced by hand there; take `suspend` away when it may be deployed"
_AUTOMATED = "a target that isn't suspended follows its revision"
_RECREATES = "nothing is deleted to be made anew unless its kind is named: recreate: {kinds: [Deployment.apps]}"
OPTIONS: Rows = {
    "ApplyOutOfSyncOnly=true": "only what differs is written",
    "ClientSideApplyMigration=true": "fields of `kubectl apply` and of argocd-controller are taken over by `adopt`",
    "ClientSideApplyMigration=false": Lost("fields of `kubectl apply` are taken over"),
    "CreateNamespace=true": Lost("declare the Namespace in git, or create it: kubectl create namespace NAME"),
    "CreateNamespace=false": "no Namespace is created unless git declares it",
    "Delete=false": "a target that leaves anneal.yaml deletes nothing",
    "FailOnSharedResource=true": "what another target or tool owns is refused",
    "Force=true": Lost(_RECREATES),
    "PruneLast=true": "deletes come last, once all stands",
    "PrunePropagationPolicy=background": Lost("deletes are waited for until the object is gone"),
    "PrunePropagationPolicy=foreground": "deletes are waited for until the object is gone",
    "Replace=true": Lost("all is applied server-side; what can't be is made anew where its kind is named: recreate: {kinds: […]}"),
    "RespectIgnoreDifferences=true": "what `ignore` names is never written",
    "ServerSideApply=true": "all is applied server-side",
    "ServerSideApply=false": Lost("all is applied server-side"),
    "SkipDryRunOnMissingResource=true": "objects of a kind that the same commit brings are judged once it is there",
    "Validate=false": Lost("the API server validates each object; correct what it refuses"),
    "Validate=true": "the API server validates each object",
}
ROWS: Rows = {
    "info": "is for people, in Argo CD's pages",
    "revisionHistoryLimit": "the record keeps the last runs",
    "syncPolicy.retry": RETRIED,
    "syncPolicy.managedNamespaceMetadata": Lost("declare the Namespace in git, with its labels and annotations"),
    "sourceHydrator": Lost("nothing is hydrated; commit what is rendered, or render it here", halts=True),
}


def application(source: CustomResource, references: References) -> list[TargetDraft]:
    """Return a target for each of its sources of manifests. Raises NotATarget."""
    spec, parts = source.fields.at("spec"), parts_of(source, references)
    common = TargetDraft()
    _put_destination(common, spec.at("destination"))
    common.put("adopt", ["argocd"])
    _put_sync(common, spec.at("syncPolicy"))
    _put_options(common, spec.below("syncPolicy.syncOptions"))
    _put_ignore(common, spec.at("ignoreDifferences"))
    if spec.at("project").text() in ("", "default"):
        spec.at("project").itself("restricts nothing")
    else:
        spec.at("project").lost("what a project allows is said by the target: namespaces, clusterScoped, impersonate")
    source.fields.at("operation").itself("is one sync that was asked for; `anneal apply NAME` asks for one")
    spec.rows(ROWS)
    for number, part in enumerate(parts):
        part.add(common)
        part.name = source.name if len(parts) == 1 else f"{source.name}-{number + 1}"
    return parts


def _put_destination(common: TargetDraft, destination: SourceField) -> None:
    namespace, server, name = destination.at("namespace"), destination.at("server"), destination.at("name")
    common.put("clusterScoped", ["Namespace"])
    common.put("namespaces", "*")
    if namespace.text() and common.take(namespace, "namespace", namespace.text(), "namespace", "and `namespaces`: it touches no other"):
        common.put("namespaces", [namespace.text()])
    if server.text() in _OWN_CLUSTER:
        server.itself("is the cluster of the kubeconfig, or the pod's own")
    elif server.text():
        text = "refuses any other; add its kubeconfig: cluster: {kubeconfig: {file: PATH}, …}"
        if not common.take(server, "cluster.server", server.text(), "server", text):
            common.put("suspend", True)
    if name.text() in ("", "in-cluster"):
        name.itself("is the cluster of the kubeconfig, or the pod's own")
    else:
        common.take(name, "cluster.context", name.text(), "", "a context of the kubeconfig: rename it where yours has another name")


def _put_sync(common: TargetDraft, policy: SourceField) -> None:
    """Take over automated sync; without it nothing is run until `suspend` is taken away."""
    automated = policy.at("automated")
    prune, heal, empty, enabled = (automated.at(key) for key in ("prune", "selfHeal", "allowEmpty", "enabled"))
    if not automated or (enabled and not enabled.flag()):
        common.put("suspend", True)
        policy.of.note(SET, enabled.path if enabled else automated.path, _MANUAL, "suspend")
    else:
        enabled.itself(_AUTOMATED)
        if not automated.mapping():
            automated.itself(_AUTOMATED)
    common.put("prune", {"enabled": prune.flag(), **({"allowEmpty": True} if empty.flag() else {})})
    common.put("drift", "correct" if heal.flag() else "report")
    prune.set("prune.enabled")
    heal.set("drift")
    empty.set("prune.allowEmpty")


def _put_options(common: TargetDraft, options: SourceField) -> None:
    for each in options.items():
        text = each.text()
        row = OPTIONS.get(text)
        if text == "Prune=false":
            common.put("prune.enabled", False)
            each.set("prune.enabled")
        elif text == "Prune=confirm":
            common.put("prune.holdAbove", {"count": 0, "fraction": 0})
            each.set("prune.holdAbove", "each plan that deletes waits for `anneal approve NAME ID`")
        elif isinstance(row, str):
            each.itself(row)
        else:
            each.lost(f"{printable(text, 80)}: {row.why if row else 'import does not know this option'}")


def _put_ignore(common: TargetDraft, rules: SourceField) -> None:
    """Take over fields that others may own. An empty group is the core group there."""
    taken: list[dict[str, Any]] = []
    for rule in rules.items():
        group = rule.at("group").text()
        select = {key: text for key in ("kind", "name", "namespace") if (text := rule.at(key).text()) and text != "*"}
        select |= {"group": group or "core"} if group != "*" else {}
        paths = _pointers(rule)
        if paths:
            taken.append({**({"select": select} if select else {}), "paths": paths})
        for key in ("group", "kind", "name", "namespace"):
            rule.at(key).set("ignore")
        rule.at("managedFieldsManagers").lost("fields are named, not who writes them: ignore: [{select: …, paths: […]}]", halts=True)
    if taken:
        common.put("ignore", taken)


def _pointers(rule: SourceField) -> list[str]:
    written = rule.at("jsonPointers").items()
    paths = [each.text() for each in written if each.text() and judged(each, "ignore", each.text(), "pointer")]
    for each in rule.at("jqPathExpressions").items():
        pointer = pointer_of(each.text())
        if pointer and not complaint("pointer", pointer):
            paths.append(pointer)
            each.set("ignore", pointer)
        else:
            each.lost("is more than a path; write the JSON pointer, `*` for any index", halts=True)
    return list(dict.fromkeys(paths))
