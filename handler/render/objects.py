"""Documents -> the objects they declare, in order, and every mistake with its file:line. Second stage of a render; pure, in the child.

What holds variables (`${name}`, `$$`) is judged as far as it can be: names and kinds with them are read on, and texts of a Secret with them
stay `stringData`. Once they are written out, or nothing writes them, `final` judges the rest.

Dropped in silence, because `kubectl get -o yaml` writes it and no author means it: `status` and the metadata that only the server sets.
Owners of fields and a deletion are mistakes: an apply by kubectl is refused with them, or makes an object that is being deleted for ever.
A hook may have `generateName`, as Argo CD allows it: its name is made of that and of what it declares, so that it changes with git.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import Any

from handler.model.advice import advice
from handler.model.errors import Problem
from handler.model.manifest import Manifest, at, canonical, items_at, without_aggregated_rules
from handler.model.names import IDENTITY, PART_OF, GroupKind, Identity, group_of
from handler.model.rollout import ARGO_HOOK, HELM_HOOK
from handler.model.tree import printable
from handler.render.document import Document
from handler.render.folders import IGNORE_FILE, KUSTOMIZATIONS
from handler.render.sops.encrypted_file import MARK
from handler.render.sops.sops_metadata import OPERATORS, MetadataRefused, SopsMetadata, allowing

Body = dict[str, Any]

_API_VERSION = re.compile(r"([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[a-z0-9]+")
_KIND = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_SEGMENT = re.compile(r"(?!\.\.?$)[^/%\s\x00-\x1f]{1,253}")
"""A name is a segment of an URL path (apimachinery, IsValidPathSegmentName)."""
_NAMES = ("metadata.name", "metadata.generateName", "metadata.namespace")
_RULES = {"apiVersion": _API_VERSION, "kind": _KIND, **dict.fromkeys(_NAMES, _SEGMENT)}
_SERVER_TIMES = ("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
_SERVER_SET = frozenset({*_SERVER_TIMES, "generation", "managedFields", "resourceVersion", "selfLink", "uid"})
_UNMEANT = {
    "managedFields": "is the API server's own record of who wrote what, and an apply with it is refused",
    **dict.fromkeys(_SERVER_TIMES[1:], "is that of an object which is being deleted: an apply would create one that is never gone"),
}
_SUFFIX, _LONGEST_PREFIX = 7, 56  # characters of a made name: a Job's may have 63, for its pods carry it as a label
_NO_OBJECT = "add the file to .annealignore if it isn't for the cluster"
_TEMPLATE = ("spec", "template")
_POD_TEMPLATES: dict[GroupKind, tuple[str, ...]] = {
    **{GroupKind("apps", kind): _TEMPLATE for kind in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")},
    GroupKind("batch", "Job"): _TEMPLATE,
    GroupKind("batch", "CronJob"): ("spec", "jobTemplate", *_TEMPLATE),
    GroupKind("", "ReplicationController"): _TEMPLATE,
    GroupKind("", "PodTemplate"): ("template",),
    GroupKind("", "Pod"): (),
}
_DATA = {GroupKind("", "Secret"): ("data", "stringData"), GroupKind("", "ConfigMap"): ("data", "binaryData")}
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_VALUE = re.compile(r"ENC\[AES256_GCM,data:|RU5DW0FFUzI1Nl9HQ00s")
"""How what SOPS has encrypted begins, as it is and as base64."""
DECRYPT = "kustomize.toolkit.fluxcd.io/decrypt"
_SHORTEST_FILE = 300  # characters of base64: the metadata alone have more
_RAW_VALUE = b"ENC[AES256_GCM,data:"
_LIST = "list its key for the target, as in decryption: {age: [{file: /etc/anneal/age.txt}]}"
_QUOTE = 'quote it: {}: "…"'
_VARIABLE = re.compile(r"\$[${]")


def objects(documents: Iterable[Document | Problem], *, final: bool = False) -> Iterator[Manifest | Problem]:
    """Yield the declared objects and every mistake, also those found before. Lists are flattened; no object is yielded twice.

    `final`: no variables are written into them any more.
    """
    places: dict[Identity, str] = {}
    for document in documents:
        if isinstance(document, Problem):
            yield document
            continue
        for item, (body, place) in enumerate(_flat(document, document.value, document.place())):
            if isinstance(body, Problem):
                yield body
                continue
            if problems := [*_problems(body, place), *(_unwritten(body, place) if final else ())]:
                yield from problems
                continue
            manifest = Manifest.of(_clean(body, final=final), place, item)
            yield _encrypted_within(manifest) or declared_twice(manifest, places) or manifest


def declared_twice(manifest: Manifest, places: dict[Identity, str]) -> Problem | None:
    """Say that an object is in `places`, where each was declared first; else note its place there."""
    earlier = places.setdefault(manifest.identity, manifest.place)
    twice = earlier is not manifest.place
    return Problem(str(manifest.identity), f"declared twice, first at {earlier}", manifest.place) if twice else None


def twice_declared(manifests: Iterable[Manifest]) -> list[Problem]:
    """Return the mistakes of objects that are declared more than once."""
    first: dict[Identity, str] = {}
    return [twice for each in manifests if (twice := declared_twice(each, first))]


def _flat(document: Document, value: Any, place: str) -> Iterator[tuple[Any, str]]:
    """Yield every object of a document with its place; a List is its items, which inherit what a typed list leaves out."""
    if value is None:
        return
    if not isinstance(value, dict):
        yield Problem("document", f"is {type_name(value)}, not a Kubernetes object", place, _NO_OBJECT), place
        return
    kind, items = value.get("kind"), value.get("items")
    if not isinstance(kind, str) or not kind.endswith("List") or not (isinstance(items, list) or (items is None and "items" in value)):
        yield value, place
        return
    inherited = {"apiVersion": value.get("apiVersion"), "kind": kind.removesuffix("List")} if kind != "List" else {}
    for item in items or ():
        whole = {**inherited, **item} if isinstance(item, dict) and not item.get("kind") else item
        yield from _flat(document, whole, document.place(item) if isinstance(item, dict) else place)


def _is_encrypted(body: Body) -> bool:
    """Whether it is SOPS' own form of an object, or holds that of a file of variables, as kustomize's generators take one by its lines."""
    if isinstance(body.get("sops"), dict) and "mac" in body["sops"]:
        return body.get("kind") != OPERATORS
    held = [body.get(field) for field in ("data", "stringData")] if body.get("kind") in ("Secret", "ConfigMap") else []
    return any(
        ("sops_mac" in each and "sops_version" in each)
        or any(isinstance(value, str) and _is_encrypted_value(value) for value in each.values())
        for each in held
        if isinstance(each, dict)
    )


def _is_encrypted_value(text: str) -> bool:
    """Whether a text is, or holds, a value that SOPS has encrypted; a whole file of SOPS may be for a program that decrypts it."""
    return bool(_VALUE.match(text)) or (_RAW_VALUE.decode() in text and "sops" not in text)


def _encrypted_within(manifest: Manifest) -> Problem | None:
    """Say that something that runs is given what SOPS has encrypted, as by a chart's values that nothing has decrypted."""
    if manifest.identity.group_kind in _POD_TEMPLATES and _RAW_VALUE in manifest.raw:
        seen = "holds a value that is still encrypted by SOPS"
        return Problem(str(manifest.identity), seen, manifest.place, f"{_LIST}; or decrypt what it comes from")
    return None


def _encrypted_file_in(body: Body) -> str:
    """Return the field of a Secret in which a whole file stands that SOPS has encrypted; empty: there is none, or it is to stay."""
    if body.get("kind") != "Secret" or at(body, "metadata", "annotations", DECRYPT) == "disabled":
        return ""
    for field in ("data", "stringData"):
        found = body.get(field)
        for key, value in found.items() if isinstance(found, dict) else ():
            if isinstance(value, str) and len(value) >= _SHORTEST_FILE and _is_encrypted_file(value, encoded=field == "data"):
                return f"{field}.{printable(key, 80)}"
    return ""


def _is_encrypted_file(text: str, *, encoded: bool) -> bool:
    try:
        plain = base64.b64decode(text) if encoded else text.encode()
    except (binascii.Error, ValueError):
        return False
    return MARK in plain and b"sops" in plain


def _encrypted(body: Body) -> tuple[str, str]:
    """Say that an object is encrypted, for whom, and what to write so that it is decrypted."""
    try:
        metadata = SopsMetadata.read(body.get("sops"))
    except MetadataRefused:
        return (
            "is still encrypted by SOPS",
            f"{_LIST}; or encrypt the whole file by sops, if it holds values that sops has written elsewhere",
        )
    return f"is still encrypted by SOPS, for {', '.join(metadata.recipients)}", allowing(metadata)


def _problems(body: Body, place: str) -> Iterator[Problem]:
    subject = _subject(body)
    if _is_encrypted(body):
        seen, fix = _encrypted(body)
        yield Problem(subject, seen, place, fix)
        return
    if field := _encrypted_file_in(body):
        fix = advice(
            "commit that file itself, and let kustomize's secretGenerator make the Secret: files: {yaml}; "
            "if it is to stay encrypted, annotate the Secret {text}: disabled",
            [field.partition(".")[2]],
            DECRYPT,
        )
        yield Problem(subject, f"holds a file that is still encrypted by SOPS, in {field}", place, fix)
        return
    if not body.keys() & {"apiVersion", "kind", "metadata"}:
        yield Problem(subject, "isn't a Kubernetes object: it has neither apiVersion, kind nor metadata", place, _NO_OBJECT)
        return
    for field, rule in (("apiVersion", _API_VERSION), ("kind", _KIND)):
        yield from _text(subject, field, body.get(field), rule, place)
    metadata = body.get("metadata")
    if not isinstance(metadata, dict):
        wrong = "is missing" if metadata is None else f"is {type_name(metadata)}, not a mapping"
        yield Problem(subject, f"metadata {wrong}", place, _hint(body))
        return
    yield from _naming(subject, metadata, place, _hint(body))
    yield from _marks(subject, metadata, place)
    yield from _text_fields(subject, body, place)


def _naming(subject: str, metadata: Body, place: str, hint: str) -> Iterator[Problem]:
    if metadata.get("generateName") and (metadata.get("name") or not _is_hook(metadata)):
        fix = "write metadata.name alone; only a hook (argocd.argoproj.io/hook, helm.sh/hook) may have generateName instead"
        yield Problem(subject, "generateName makes another object each time; git declares objects by name", place, fix)
    elif metadata.get("generateName"):
        yield from _text(subject, "metadata.generateName", metadata["generateName"], _SEGMENT, place, hint)
    else:
        yield from _text(subject, "metadata.name", metadata.get("name"), _SEGMENT, place, hint)
    if metadata.get("namespace") not in (None, ""):
        yield from _text(subject, "metadata.namespace", metadata["namespace"], _SEGMENT, place)


def _is_hook(metadata: Body) -> bool:
    annotations = metadata.get("annotations")
    return isinstance(annotations, dict) and bool(annotations.get(ARGO_HOOK) or annotations.get(HELM_HOOK))


def _named(body: Body) -> Body:
    """Name a hook without a name by its content."""
    metadata = dict(body["metadata"])
    prefix = metadata.pop("generateName")[:_LONGEST_PREFIX]
    named = {**body, "metadata": metadata}
    return {**named, "metadata": {**metadata, "name": prefix + hashlib.sha256(canonical(named)).hexdigest()[:_SUFFIX]}}


def _text(subject: str, field: str, value: Any, rule: re.Pattern[str], place: str, fix: str = "") -> Iterator[Problem]:
    if value is None or value == "":
        yield Problem(subject, f"{field} is missing", place, fix or _NO_OBJECT)
    elif not isinstance(value, str):
        yield Problem(subject, f"{field} is {type_name(value)}, not text", place, "quote it")
    elif not rule.fullmatch(value) and not _VARIABLE.search(value):
        yield Problem(subject, f"{field} can't be {printable(value, 80)!r}", place)


def _unwritten(body: Body, place: str) -> Iterator[Problem]:
    """Yield the names and kinds that still hold a variable and can't be one."""
    for path, rule in _RULES.items():
        value = at(body, *path.split("."))
        if isinstance(value, str) and _VARIABLE.search(value) and not rule.fullmatch(value):
            yield Problem(_subject(body), f"{path} can't be {printable(value, 80)!r}", place)


def _marks(subject: str, metadata: Body, place: str) -> Iterator[Problem]:
    for field, ours in (("labels", PART_OF), ("annotations", IDENTITY)):
        if isinstance(metadata.get(field), dict) and ours in metadata[field]:
            yield Problem(subject, f"metadata.{field} holds {ours}, which marks what Anneal has applied", place, "remove it from git")
    unmeant = (field for field in _UNMEANT if metadata.get(field) is not None)
    yield from (Problem(subject, f"metadata.{field} {_UNMEANT[field]}", place, "remove it from git") for field in unmeant)


def _clean(body: Body, *, final: bool) -> Body:
    """Return the object as it is applied; nothing of the document is changed, for aliases may share its parts."""
    clean = {name: value for name, value in without_aggregated_rules(body).items() if name != "status"}
    clean["metadata"] = {
        name: value for name, value in body["metadata"].items() if name not in _SERVER_SET and (name, value) != ("namespace", "")
    }
    if clean["metadata"].get("namespace", "") is None:
        del clean["metadata"]["namespace"]
    if isinstance(body.get("spec"), dict):
        clean["spec"] = _without_null_times(body["spec"])
    if clean["kind"] == "Secret" and clean["apiVersion"] == "v1" and "stringData" in clean:
        plain, waits = clean.pop("stringData") or {}, {}
        if not final:
            waits = {name: text for name, text in plain.items() if _VARIABLE.search(f"{name} {text or ''}")}
            plain = {name: text for name, text in plain.items() if name not in waits}
        encoded = {name: base64.b64encode((text or "").encode()).decode() for name, text in plain.items()}
        clean["data"] = {**(clean.get("data") or {}), **encoded}
        clean |= {"stringData": waits} if waits else {}
    return _named(clean) if clean["metadata"].get("generateName") else clean


def _without_null_times(spec: Body) -> Body:
    """Drop the `creationTimestamp: null` that generators leave in templates: applied, it would be a field we own."""
    clean = dict(spec)
    for name in ("template", "jobTemplate"):
        if isinstance(spec.get(name), dict):
            clean[name] = _template(spec[name])
    claims = spec.get("volumeClaimTemplates")
    if isinstance(claims, list):
        clean["volumeClaimTemplates"] = [_template(claim) if isinstance(claim, dict) else claim for claim in claims]
    return clean


def _template(template: Body) -> Body:
    clean = dict(template)
    metadata = template.get("metadata")
    if isinstance(metadata, dict) and metadata.get("creationTimestamp", "") is None:
        clean["metadata"] = {name: value for name, value in metadata.items() if name != "creationTimestamp"}
    if isinstance(template.get("spec"), dict):
        clean["spec"] = _without_null_times(template["spec"])
    return clean


def _subject(body: Body) -> str:
    """Return `Deployment/shop/api`, without parts that can't be read."""
    metadata = body.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    parts = (body.get("kind"), metadata.get("namespace"), metadata.get("name") or metadata.get("generateName"))
    return printable("/".join(part for part in parts if isinstance(part, str) and part), 200) or "document"


def _hint(body: Body) -> str:
    """What to do about a file that was never meant for the cluster."""
    if str(body.get("apiVersion")).startswith("kustomize.config.k8s.io/"):
        return f"kustomize reads this as {KUSTOMIZATIONS[0]} alone: rename it, or add the file to {IGNORE_FILE}"
    return _NO_OBJECT


# --- what the server takes as text only: data of Secrets and ConfigMaps, labels and annotations, variables of containers
def _text_fields(subject: str, body: Body, place: str) -> Iterator[Problem]:
    kind = GroupKind(group_of(str(body.get("apiVersion"))), str(body.get("kind")))
    found = [(path, at(body, path)) for path in _DATA.get(kind, ())]
    found += _text_marks("metadata", body.get("metadata"))
    template = _POD_TEMPLATES.get(kind)
    if template is not None:
        found += _text_marks(".".join((*template, "metadata")), at(body, *template, "metadata")) if template else []
        yield from _variables(subject, ".".join((*template, "spec")), at(body, *template, "spec"), place)
    for path, values in found:
        yield from _texts(subject, path, values, place)


def _text_marks(path: str, metadata: Any) -> list[tuple[str, Any]]:
    return [(f"{path}.{field}", at(metadata, field)) for field in ("labels", "annotations")]


def _texts(subject: str, path: str, values: Any, place: str) -> Iterator[Problem]:
    """Yield what is wrong with a mapping of texts; null stands for none."""
    if values is not None and not isinstance(values, dict):
        yield Problem(subject, f"{path} is {type_name(values)}, not a mapping", place)
    for name, value in values.items() if isinstance(values, dict) else ():
        if value is not None and not isinstance(value, str):
            key = printable(name, 80)
            yield Problem(subject, f"{path}.{key} is {type_name(value)}, not text", place, _QUOTE.format(key))


def _variables(subject: str, path: str, spec: Any, place: str) -> Iterator[Problem]:
    for field in _CONTAINERS:
        for container in items_at(spec, field):
            yield from _of_container(subject, f"{path}.{field}[{_name(container)}].env", items_at(container, "env"), place)


def _of_container(subject: str, path: str, variables: Iterable[Any], place: str) -> Iterator[Problem]:
    for each in variables:
        value = at(each, "value")
        if value is not None and not isinstance(value, str):
            seen = f"{path}[{_name(each)}].value is {type_name(value)}, not text"
            fix = "a variable holds one text: write it as one, or take it from a ConfigMap or Secret (valueFrom)"
            yield Problem(subject, seen, place, fix if isinstance(value, dict | list) else _QUOTE.format("value"))


def _name(item: Any) -> str:
    name = at(item, "name")
    return printable(name, 80) if isinstance(name, str) else "?"


def type_name(value: Any) -> str:
    """Name the type of a value; never the value, which may be a secret."""
    names = {dict: "a mapping", list: "a list", bool: "true or false", int: "a number", float: "a number", str: "text", type(None): "null"}
    return names[type(value)]
