"""What Flux' Kustomization and HelmRelease have alike: whose rights, which cluster, health in CEL, fields that others own. Pure."""

from __future__ import annotations

import re
from typing import Any

from handler.cli.importing.custom_resource import SourceField
from handler.cli.importing.target_draft import HOME_CLUSTER, NotATarget, TargetDraft, complaint, judged
from handler.config.cel import complaint as cel_complaint
from handler.config.value_formats import RANGES, duration

_LITERAL = re.compile(r"\^?((?:[A-Za-z0-9-]|\\?\.(?!\*)|\.\*)*)\$?")
_GO_DURATION = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,12})?)(ms|h|m|s)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_CHECK_FORMS = {"apiVersion": "groupVersion", "kind": "kindName", "current": "cel", "inProgress": "cel", "failed": "cel"}


def taken_duration(found: SourceField) -> str:
    """Return a duration of Go (`1h0m0s`, `90s`) as the configuration writes it, within its bounds; empty: there is none, noted as lost."""
    text, limits = found.text(), RANGES["duration"]
    if not text:
        return ""
    parts = _GO_DURATION.findall(text)
    if len(text) > 40 or "".join(map("".join, parts)) != text:
        found.lost("isn't a duration such as 5m")
        return ""
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in parts)
    return duration(min(max(round(seconds, 3), limits.least), limits.most))


def put_cluster_identity(draft: TargetDraft, spec: SourceField, namespace: str) -> None:
    """Take over the ServiceAccount that is impersonated and the kubeconfig of another cluster. Raises NotATarget."""
    account = spec.at("serviceAccountName")
    if account.text():
        draft.take(account, "impersonate.serviceAccount", f"{namespace}/{account.text()}", "serviceAccount")
    secret = spec.below("kubeConfig.secretRef")
    name, key = secret.at("name").text(), secret.at("key").text() or "value"
    if spec.at("kubeConfig") and not name:
        raise NotATarget("reaches its cluster by no kubeconfig in a Secret; write a target with `cluster: {eks: …}` or a kubeconfig")
    setting = "cluster.kubeconfig.kubernetesSecret"
    if name and not draft.take(secret.at("name"), setting, f"{namespace}/{name}/{key}", "kubernetesSecret", HOME_CLUSTER):
        raise NotATarget("has its kubeconfig in a Secret whose name no configuration can hold")
    secret.at("key").set(setting)


def put_health_checks(draft: TargetDraft, entries: SourceField) -> None:
    """Take over CEL expressions of health: the list has the same form; of two for the same kind the first."""
    taken: list[dict[str, str]] = []
    kinds: set[tuple[str, str]] = set()
    for entry in entries.items():
        row = {key: text for key in _CHECK_FORMS if (text := entry.at(key).text())}
        wrong = _wrong_check(row)
        kind = row.get("apiVersion", "").rpartition("/")[0], row.get("kind", "")
        if wrong or kind in kinds:
            entry.lost(wrong or "is a second entry for its kind", halts=True)
            continue
        kinds.add(kind)
        taken.append(row)
        for key in row:
            entry.at(key).set("healthCheckExprs")
    if taken:
        draft.put("healthCheckExprs", taken)


def _wrong_check(row: dict[str, str]) -> str:
    if not row.keys() >= {"apiVersion", "current"}:
        return "healthCheckExprs needs `apiVersion` and `current`"
    formal = next((found for key, text in row.items() if (found := complaint(_CHECK_FORMS[key], text))), "")
    expressions = [row[key] for key in ("current", "inProgress", "failed") if key in row]
    return formal or next((f"CEL can't read it: {found}" for text in expressions if (found := cel_complaint(text))), "")


def put_ignore(draft: TargetDraft, rules: SourceField) -> None:
    """Take over fields that others may own: a list of `paths`, each for the objects of `target`."""
    taken: list[dict[str, Any]] = list(draft.settings.get("ignore", []))
    for rule in rules.items():
        select, paths = _select(rule.at("target")), rule.at("paths")
        if select is None:
            paths.lost("belongs to a selector that can't be written as globs; write an `ignore` of your own", halts=True)
        elif paths.texts() and judged(paths, "ignore", paths.texts(), "pointer"):
            taken.append({**({"select": select} if select else {}), "paths": paths.texts()})
    if taken:
        draft.put("ignore", taken)


def _select(target: SourceField) -> dict[str, str] | None:
    """Return a kustomize selector, whose names are regular expressions, as globs; None: it can't be one."""
    selectors = [target.at(key) for key in ("labelSelector", "annotationSelector") if target.at(key).text()]
    for each in selectors:
        each.lost("objects are selected by group, kind, namespace and name alone", halts=True)
    found: dict[str, str] = {}
    for key in ("group", "kind", "namespace", "name"):
        text = target.at(key).text()
        matched = _LITERAL.fullmatch(text)
        if not matched:
            target.at(key).lost("is a regular expression that no glob stands for", halts=True)
            return None
        if text:
            found[key] = matched[1].replace(".*", "*").replace("\\.", ".")
            target.at(key).set("ignore")
    target.at("version").itself("versions of a group are one kind")
    return None if selectors else found
