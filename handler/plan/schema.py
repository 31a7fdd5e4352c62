"""A custom resource against the schema of a CustomResourceDefinition that only this run creates.

The API server can't dry-run it yet, so git's own schema judges it: structural schemas (KEP-1111) are OpenAPI v3 with a few
extensions, made readable for JSON Schema here. Unknown fields are mistakes, as with `fieldValidation=Strict`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from handler.model.errors import Problem
from handler.model.manifest import Manifest
from handler.plan.admit import Desired

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

_ROOT = ("apiVersion", "kind", "metadata", "status")


def check(item: Desired, crd: Manifest) -> list[Problem]:
    """Return what the CRD's schema says against an object, each with its field."""
    schema = _schema(crd, item.resource.version)
    if schema is None:
        return []
    body = item.manifest.body()
    subject, place = str(item.identity), item.manifest.place
    problems = [Problem(subject, f"{path}: unknown field", place) for path in _unknown(schema, body, "")]
    return problems + [Problem(subject, text, place) for text in _violations(crd, item.resource.version, body)]


@lru_cache(maxsize=64)
def _schema(crd: Manifest, version: str) -> dict[str, Any] | None:
    """Return the schema of one version, if it has one."""
    versions = (crd.body().get("spec") or {}).get("versions") or []
    found: dict[str, Any] = next((item for item in versions if item.get("name") == version), {})
    schema: dict[str, Any] | None = (found.get("schema") or {}).get("openAPIV3Schema")
    return schema


def _unknown(schema: dict[str, Any], value: Any, path: str) -> Iterator[str]:
    """Yield the fields that no property describes."""
    if schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("x-kubernetes-embedded-resource"):
        return
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unknown(schema.get("items") or {}, item, f"{path}[{index}]")
    elif isinstance(value, dict) and isinstance(schema.get("additionalProperties"), dict):
        for key, item in value.items():
            yield from _unknown(schema["additionalProperties"], item, f"{path}.{key}")
    elif isinstance(value, dict) and not schema.get("additionalProperties"):
        yield from _unknown_properties(schema.get("properties") or {}, value, path)


def _unknown_properties(properties: dict[str, Any], value: dict[str, Any], path: str) -> Iterator[str]:
    """Yield the unknown fields of one object and of those below it."""
    for key, item in value.items():
        if not path and key in _ROOT:
            continue
        if key in properties:
            yield from _unknown(properties[key], item, f"{path}.{key}")
        else:
            yield f"{path}.{key}".lstrip(".")


def _violations(crd: Manifest, version: str, body: dict[str, Any]) -> Iterator[str]:
    """Yield what JSON Schema finds, as `field: message`."""
    for error in _validator(crd, version).iter_errors(body):
        yield f"{'.'.join(str(step) for step in error.absolute_path) or 'object'}: {error.message}"


@lru_cache(maxsize=64)
def _validator(crd: Manifest, version: str) -> Draft202012Validator:
    """Return what validates one version; a CRD's schema may have a megabyte, and many objects."""
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - needed only by runs that create a CRD

    return Draft202012Validator(_json_schema(_schema(crd, version) or {}))


_DROPPED = frozenset({"example", "default", "format", "nullable", "description", "title"})


def _json_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Translate the OpenAPI v3 and Kubernetes words that JSON Schema doesn't know."""
    made = {key: _translated(key, value) for key, value in schema.items() if key not in _DROPPED and not key.startswith("x-")}
    if schema.get("x-kubernetes-int-or-string"):
        made.pop("anyOf", None)
        made["type"] = ["integer", "string"]
    for bound in ("Minimum", "Maximum"):
        if made.pop(f"exclusive{bound}", False):
            made[f"exclusive{bound}"] = made.pop(bound.lower())
    if schema.get("nullable") and isinstance(made.get("type"), str):
        made["type"] = [made["type"], "null"]
        if "enum" in made:
            made["enum"] = [*made["enum"], None]
    return made


def _translated(key: str, value: Any) -> Any:
    """Translate what one keyword holds: a schema, schemas by name, or a list of schemas."""
    if key == "properties":
        return {name: _json_schema(sub) for name, sub in value.items()}
    if key in ("items", "additionalProperties", "not") and isinstance(value, dict):
        return _json_schema(value)
    if key in ("allOf", "anyOf", "oneOf"):
        return [_json_schema(sub) for sub in value]
    return value
