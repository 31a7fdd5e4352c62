"""A custom resource against the schema of a CustomResourceDefinition: one that only this run creates, or that a run makes narrower.

The server can't dry-run the one yet; by the other it prunes what the new schema lacks.

Structural schemas (KEP-1111) are made readable for JSON Schema; unknown fields are mistakes, as with `fieldValidation=Strict`. The schema
is git's and unchecked: only plain words are translated, each of the shape it must have; no `$ref`, which could lead anywhere, and no
`pattern`, which Python could take for ever to match.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from handler.model.errors import Problem
from handler.model.field_masking import MASKED, shown
from handler.model.hidden_fields import HiddenFields, without
from handler.model.manifest import Manifest, at, items_at
from handler.plan.admission import Desired

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

_INDEX = re.compile(r"\[\d+\]")
_ALL = ".**"
"""How the path of what is kept whatever it is ends."""
_TYPED = ("apiVersion", "kind", "metadata")
_ROOT = (*_TYPED, "status")
_KEEPS, _EMBEDDED = "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"


def check(item: Desired, crd: Manifest) -> list[Problem]:
    """Return what the CRD's schema says against an object, each with its field."""
    schema = _schema(crd, item.resource.version)
    if schema is None:
        return []
    body = item.manifest.body()
    found = [f"{path}: unknown field" for path in _unknown(schema, without(item.manifest), "")]
    found += _violations(_validator(crd, item.resource.version), body, item)
    return [Problem(str(item.identity), text, item.manifest.place) for text in found]


def narrowed(live: dict[str, Any], declared: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield name and schema of each version by which instances of a live CRD may lose fields once it is as declared.

    What is stored from now on is compared with what was, and a version that is new with that, too, unless a webhook converts.
    """
    kept = {_KEEPS: True} if at(live, "spec", "preserveUnknownFields") is True else {}
    schemas = {at(each, "name"): at(each, "schema", "openAPIV3Schema") for each in items_at(live, "spec", "versions")}
    schemas = {name: {**_mapping(schema), **kept} if kept else schema for name, schema in schemas.items()}
    was_stored = schemas.get(stored(live))
    converts = at(declared, "spec", "conversion", "strategy") == "Webhook"
    for each in items_at(declared, "spec", "versions"):
        name, schema = str(at(each, "name")), at(each, "schema", "openAPIV3Schema")
        is_stored = at(each, "storage") is True
        before = [schemas.get(name, None if converts else was_stored), was_stored if is_stored and not converts else None]
        if (at(each, "served") is True or is_stored) and any(_lacks(one, schema) for one in before if one is not None):
            yield name, schema


def stored(crd: dict[str, Any]) -> str:
    """Return the version in which a CRD's instances are stored."""
    return next((str(at(each, "name")) for each in items_at(crd, "spec", "versions") if at(each, "storage") is True), "")


def _lacks(before: Any, after: Any) -> bool:
    """Whether a schema lacks what another has, or says more of what that keeps whatever it is."""
    had, has = ({path for path in _fields(each) if not f"{path}.".startswith(".status.")} for each in (before, after))
    return bool(had - has) or any(f"{path.rpartition('.')[0]}{_ALL}" in had for path in has - had)


def lost(schema: Any, instance: dict[str, Any]) -> set[str]:
    """Return the fields of an instance that a schema lacks, but for its status, which a controller writes again."""
    return {_INDEX.sub("[]", path) for path in _unknown(schema, instance, "")}


def _fields(schema: Any, path: str = "") -> Iterator[str]:
    """Yield the path of each field that a schema has, with those that it keeps whatever they are."""
    schema = _mapping(schema)
    yield from [f"{path}{_ALL}"] if schema.get(_KEEPS) or schema.get("additionalProperties") is True else ()
    yield from (f"{path}.{key}" for key in _TYPED if schema.get(_EMBEDDED))
    for step, each in (*_mapping(schema.get("properties")).items(), ("*", schema.get("additionalProperties")), ("[]", schema.get("items"))):
        yield from [f"{path}.{step}", *_fields(each, f"{path}.{step}")] if isinstance(each, dict) else ()


@lru_cache(maxsize=64)
def _schema(crd: Manifest, version: str) -> dict[str, Any] | None:
    versions = items_at(crd.body(), "spec", "versions")
    schema = next((at(each, "schema", "openAPIV3Schema") for each in versions if at(each, "name") == version), None)
    return schema if isinstance(schema, dict) else None


def _unknown(schema: Any, value: Any, path: str) -> Iterator[str]:
    if not isinstance(schema, dict):
        return
    additional = schema.get("additionalProperties")
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unknown(schema.get("items"), item, f"{path}[{index}]")
    elif isinstance(value, dict) and isinstance(additional, dict):
        for key, item in value.items():
            yield from _unknown(additional, item, f"{path}.{key}")
    elif isinstance(value, dict) and not additional:
        own = () if path and not schema.get(_EMBEDDED) else _TYPED if path else _ROOT  # of each object, whatever its schema lists
        properties = _mapping(schema.get("properties"))
        kept = {key: value[key] for key in value if key not in own and (key in properties or not schema.get(_KEEPS))}
        yield from _unknown_properties(properties, kept, path)


def _unknown_properties(properties: dict[str, Any], value: dict[str, Any], path: str) -> Iterator[str]:
    for key, item in value.items():
        if key in properties:
            yield from _unknown(properties[key], item, f"{path}.{key}")
        else:
            yield f"{path}.{key}".lstrip(".")


def _violations(validator: Draft202012Validator, body: dict[str, Any], item: Desired) -> Iterator[str]:
    kind, hidden = item.identity.group_kind, HiddenFields.of(item.manifest)
    for error in validator.iter_errors(body):
        path = ".".join(str(step) for step in hidden.told(tuple(error.absolute_path))) or "object"
        rule = f"{error.validator}: {shown(kind, '', error.validator_value)}"
        value = MASKED if hidden.hides(tuple(error.absolute_path)) else shown(kind, path, error.instance)
        yield f"{path}: {error.message if error.validator == 'required' else f'{value} breaks {rule}'}"


@lru_cache(maxsize=64)
def _validator(crd: Manifest, version: str) -> Draft202012Validator:
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - needed only by runs that create a CRD

    return Draft202012Validator(_json_schema(_schema(crd, version)))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_PLAIN: dict[str, Callable[[Any], bool]] = {
    "type": lambda value: value in _TYPES,
    "enum": lambda value: isinstance(value, list),
    "required": lambda value: isinstance(value, list) and all(isinstance(name, str) for name in value),
    "minimum": _is_number,
    "maximum": _is_number,
    "multipleOf": lambda value: _is_number(value) and value > 0,
    "uniqueItems": lambda value: isinstance(value, bool),
    **dict.fromkeys(
        ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
        lambda value: isinstance(value, int) and value >= 0,
    ),
}
"""The words that mean the same in JSON Schema, with the shape they must have there."""


def _json_schema(schema: Any) -> dict[str, Any]:
    schema = _mapping(schema)
    made = {word: schema[word] for word, fits in _PLAIN.items() if word in schema and fits(schema[word])}
    if isinstance(schema.get("properties"), dict):
        made["properties"] = {name: _json_schema(sub) for name, sub in schema["properties"].items()}
        given = {name for name, sub in schema["properties"].items() if at(sub, "default") is not None}
        made["required"] = [name for name in made.get("required", ()) if name not in given]  # the server fills defaults in first
    made |= {word: _json_schema(schema[word]) for word in ("items", "additionalProperties", "not") if isinstance(schema.get(word), dict)}
    made |= {
        word: [_json_schema(sub) for sub in schema[word]] for word in ("allOf", "anyOf", "oneOf") if isinstance(schema.get(word), list)
    }
    return _kubernetes_words(schema, made)


def _kubernetes_words(schema: dict[str, Any], made: dict[str, Any]) -> dict[str, Any]:
    """Add exclusive bounds, int-or-string and nullable, which OpenAPI v3.0 and Kubernetes say in words of their own."""
    for bound in ("Minimum", "Maximum"):
        if schema.get(f"exclusive{bound}") is True and bound.lower() in made:
            made[f"exclusive{bound}"] = made.pop(bound.lower())
    if schema.get("x-kubernetes-int-or-string") is True:
        made.pop("anyOf", None)
        made["type"] = ["integer", "string"]
    if schema.get("nullable") is True and "type" in made:
        made["type"] = [*([made["type"]] if isinstance(made["type"], str) else made["type"]), "null"]
        if "enum" in made:
            made["enum"] = [*made["enum"], None]
    return made


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
