"""The JSON Schema (2020-12) of `anneal.yaml`, from the dataclasses and the forms: what editors check, the loader checks.

`python -m handler.config.schema` writes `schema.json` beside this file.
"""

from __future__ import annotations

import json
from dataclasses import is_dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from handler.config.decryption import Decryption
from handler.config.git_settings import Repository, RepositoryAuth, Revision, SecretRef, Verify
from handler.config.page_settings import PageProxy, PageSettings, RoleBinding
from handler.config.setting_rules import PLACES, SOME
from handler.config.settings import Cluster, IgnoreRule, Settings, Target
from handler.config.settings_shape import Slot, slots, written
from handler.config.value_formats import DURATION, FORMS, RANGES
from handler.model.to_json import camel

FILE = Path(__file__).with_name("schema.json")
ID = "https://anneal.dev/schema/v1alpha1/config.json"
_SSH = {"required": ["ssh"], "properties": {"ssh": {"type": "object"}}}
_IN_CLUSTER = {"required": ["inCluster"], "properties": {"inCluster": {"const": True}}}
_EKS = {"required": ["eks"], "properties": {"eks": {"type": "object"}}}
_WAYS = ("basic", "ssh", "githubApp")
_RULES: dict[type, dict[str, Any]] = {
    RepositoryAuth: {
        "not": {
            "anyOf": [
                {"required": [one, other], "properties": {one: {"type": "object"}, other: {"type": "object"}}}
                for one, other in combinations(_WAYS, 2)
            ]
        }
    },
    Repository: {
        "if": {"properties": {"url": {"pattern": "^ssh://"}}},
        "then": {"required": ["auth"], "properties": {"auth": _SSH}},
        "else": {"properties": {"auth": {"not": _SSH}}},
    },
    Verify: {"anyOf": [{"required": [name], "properties": {name: {"minItems": 1}}} for name in ("ssh", "pgp")]},
    Decryption: {"anyOf": [{"required": [name], "properties": {name: {"minItems": 1}}} for name in ("age", "kms")]},
    SecretRef: {"oneOf": [{"required": [camel(name)]} for name in PLACES]},
    Revision: {
        "anyOf": [
            {"oneOf": [{"required": ["branch"]}, {"required": ["tag"]}, {"required": ["semver"]}, {"required": ["commit"]}]},
            {"required": ["promoted"]},
        ],
        "if": {"required": ["promoted"], "properties": {"promoted": {"type": "object"}}},
        "then": {"not": {"anyOf": [{"required": [name]} for name in ("tag", "semver", "commit")]}},
    },
    IgnoreRule: {"required": ["paths"]},
    PageProxy: {"allOf": [{"required": ["secret"], "properties": {"secret": {"type": "object"}}}]},
    PageSettings: {
        "allOf": [{"required": ["roles"], "properties": {"roles": {"minItems": 1}}}],
        "anyOf": [
            *({"required": [name], "properties": {name: {"type": "object"}}} for name in ("proxy", "oidc")),
            {"required": ["tokens"], "properties": {"tokens": {"minItems": 1}}},
        ],
    },
    RoleBinding: {"anyOf": [{"required": [name], "properties": {name: {"minItems": 1}}} for name in ("groups", "users")]},
    Cluster: {
        "not": {
            "anyOf": [
                {**_IN_CLUSTER, "anyOf": [{"required": ["kubeconfig"]}, {"required": ["context"]}]},
                {**_EKS, "anyOf": [_IN_CLUSTER, {"required": ["kubeconfig"]}, {"required": ["context"]}]},
            ]
        }
    },
}
"""What `setting_rules` checks between fields, as far as JSON Schema can say it."""


def schema() -> dict[str, Any]:
    """Return the whole schema. Where `defaults` is written, a target may lack what it gives."""
    build = _Builder()
    whole = build.properties(Settings, partial=False)
    full, shared = build.reference(Target, partial=False), build.reference(Target, partial=True)
    named = {"allOf": [shared, {"required": ["name"]}]}
    header = {
        "apiVersion": {"const": FORMS["apiVersion"].example, "description": "Version of this format."},
        "kind": {"const": FORMS["document"].example, "description": "Always Config."},
        "defaults": {**shared, "description": "Merged under each target: mappings at every depth, lists replaced."},
        "include": {"type": "array", "items": _text("include"), "default": [], "description": "Globs of files that hold more targets."},
    }
    whole["targets"] = {"type": "array", "description": whole["targets"]["description"]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": ID,
        "title": "anneal.yaml",
        "type": "object",
        "additionalProperties": False,
        "properties": header | whole,
        "required": ["apiVersion", "kind"],
        "anyOf": [{"required": ["targets"]}, {"required": ["include"]}],
        "if": {"required": ["defaults"]},
        "then": {"properties": {"targets": {"items": named}, "defaults": {"not": {"required": ["name"]}}}},
        "else": {"properties": {"targets": {"items": full}}},
        "$defs": dict(sorted(build.definitions.items())),
    }


class _Builder:
    """Collects a definition for each settings class, and one with nothing required for what `defaults` may hold."""

    def __init__(self) -> None:
        self.definitions: dict[str, Any] = {}

    def reference(self, cls: type, *, partial: bool) -> dict[str, Any]:
        """Return a `$ref` to a class, defining it first. The partial one of a class that requires nothing is the class itself."""
        name = cls.__name__
        if name not in self.definitions:
            self.definitions[name] = self._object(cls, partial=False)
        if partial and f"{name}Defaults" not in self.definitions:
            made = self._object(cls, partial=True)
            if made != self.definitions[name]:
                self.definitions[f"{name}Defaults"] = _shared(name, made, self.definitions[name])
        chosen = f"{name}Defaults" if partial and f"{name}Defaults" in self.definitions else name
        return {"$ref": f"#/$defs/{chosen}"}

    def _object(self, cls: type, *, partial: bool) -> dict[str, Any]:
        made: dict[str, Any] = {"type": "object", "description": cls.__doc__, "additionalProperties": False}
        made["properties"] = self.properties(cls, partial=partial)
        required = [slot.key for slot in slots(cls) if slot.required]
        if partial:
            return made
        return made | ({"required": required} if required else {}) | _RULES.get(cls, {})

    def properties(self, cls: type, *, partial: bool) -> dict[str, Any]:
        """Return the schema of each field, by its key."""
        return {slot.key: self._property(cls, slot, partial=partial) for slot in slots(cls)}

    def _property(self, cls: type, slot: Slot, *, partial: bool) -> dict[str, Any]:
        made = self._list(cls, slot) if slot.item is not None else self._single(slot.type, slot.kind, partial=partial)
        if slot.default == "" and made.keys() > {"type"}:
            made = {"anyOf": [{"const": ""}, made]}
        if slot.optional:
            made = {"anyOf": [made, {"type": "null"}]}
        made["description"] = slot.doc
        if not slot.required and (slot.default or "minItems" not in made):
            made["default"] = written(slot.default, slot.kind)
        return made

    def _list(self, cls: type, slot: Slot) -> dict[str, Any]:
        made: dict[str, Any] = {"type": "array", "items": self._single(slot.item, slot.kind, partial=False)}
        if (cls, slot.name) in SOME:
            made["minItems"] = 1
        if slot.words:
            return {"anyOf": [{"enum": list(slot.words)}, made]}
        if FORMS[slot.kind].single:
            return {"anyOf": [made["items"], made]}
        lone = FORMS[slot.kind].lone
        return {"anyOf": [{"const": lone}, {"const": [lone]}, made]} if lone else made

    def _single(self, hint: Any, kind: str, *, partial: bool) -> dict[str, Any]:
        if is_dataclass(hint):
            return self.reference(hint, partial=partial)  # type: ignore[arg-type]  # is_dataclass also accepts instances
        if get_origin(hint) is Literal:
            return {"anyOf": [{"enum": list(get_args(hint))}, _text(kind)]} if kind else {"enum": list(get_args(hint))}
        if hint is bool:
            return {"type": "boolean"}
        if kind == "json":
            return {"type": "object"}
        return _number(hint, kind) if kind in RANGES else _text(kind)


def _shared(name: str, made: dict[str, Any], full: dict[str, Any]) -> dict[str, Any]:
    """Return a partial definition whose properties refer to those of the full one where they are equal."""
    pairs = ((key, value, full["properties"][key]) for key, value in made["properties"].items())
    return made | {
        "properties": {key: {"$ref": f"#/$defs/{name}/properties/{key}"} if value == its else value for key, value, its in pairs}
    }


def _number(hint: type, kind: str) -> dict[str, Any]:
    limits = RANGES[kind]
    bounds = {"type": "integer" if hint is int else "number", "minimum": limits.least, "maximum": limits.most}
    return {"anyOf": [bounds, {"type": "string", "pattern": f"^{DURATION}$"}]} if limits.is_duration else bounds


def _text(kind: str) -> dict[str, Any]:
    form = FORMS[kind]
    made: dict[str, Any] = {"type": "string"}
    if form.pattern:
        made["pattern"] = f"^(?:{form.pattern})$"
    if form.refused:
        made["not"] = {"anyOf": [{"pattern": refusal.pattern} for refusal in form.refused]}
    if form.example and not form.lone:
        made["examples"] = [form.example]
    return made


def text() -> str:
    """Return the schema as `schema.json` holds it: one property a line."""
    whole = schema()
    definitions = {name: _object_text(definition, "    ") for name, definition in whole.pop("$defs").items()}
    return _object_text(whole, "", {"$defs": _mapping_text(definitions, "  ")}) + "\n"


def _object_text(made: dict[str, Any], indent: str, more: dict[str, str] | None = None) -> str:
    texts = {key: json.dumps(value, ensure_ascii=False) for key, value in made.items()}
    properties = {key: json.dumps(value, ensure_ascii=False) for key, value in made["properties"].items()}
    return _mapping_text(texts | {"properties": _mapping_text(properties, indent + "  ")} | (more or {}), indent)


def _mapping_text(texts: dict[str, str], indent: str) -> str:
    lines = ",\n".join(f"{indent}  {json.dumps(key)}: {value}" for key, value in texts.items())
    return f"{{\n{lines}\n{indent}}}"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
