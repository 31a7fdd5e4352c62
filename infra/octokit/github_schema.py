"""GitHub's own description of its REST API: what an operation's request and answers look like, as JSON Schema, with GitHub's examples.

npm's @octokit/openapi holds all of it, 400 MB unpacked; the operations that `OPERATIONS` names are taken out when it is installed, with
everything they refer to written in place, and kept in the cache, outside the checkout.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from infra.npminstall import installed

OPERATIONS = (
    ("POST", "/repos/{owner}/{repo}/statuses/{sha}"),
    ("GET", "/repos/{owner}/{repo}/commits/{ref}/statuses"),
    ("GET", "/repos/{owner}/{repo}/pulls/{pull_number}"),
    ("POST", "/repos/{owner}/{repo}/issues/{issue_number}/comments"),
    ("GET", "/repos/{owner}/{repo}/issues/comments/{comment_id}"),
    ("PATCH", "/repos/{owner}/{repo}/issues/comments/{comment_id}"),
    ("DELETE", "/repos/{owner}/{repo}/issues/comments/{comment_id}"),
    ("GET", "/repos/{owner}/{repo}/compare/{basehead}"),
    ("GET", "/repos/{owner}/{repo}/collaborators/{username}/permission"),
    ("POST", "/app/installations/{installation_id}/access_tokens"),
)
_DESCRIPTION = "node_modules/@octokit/openapi/generated/api.github.com.json"
_TAKEN = "operations.json"
_WORDS = {"description", "example", "examples", "x-github", "externalDocs"}
"""What a schema says to people."""


@dataclass(frozen=True)
class Operation:
    """One operation. `request`: the body's schema, None: it has no body; `query`: names of parameters; by status: `answers`, `examples`."""

    request: Mapping[str, Any] | None
    query: frozenset[str]
    answers: Mapping[int, Mapping[str, Any]]
    examples: Mapping[int, Any]


@cache
def operation(method: str, path: str) -> Operation:
    """Return one of `OPERATIONS`. Raises KeyError: it isn't one; RuntimeError: npm can't install the description."""
    taken = _all()[f"{method} {path}"]
    by_status = {int(status): answer for status, answer in taken["answers"].items()}
    return Operation(
        taken["request"],
        frozenset(taken["query"]),
        {status: answer["schema"] for status, answer in by_status.items() if "schema" in answer},
        {status: answer["example"] for status, answer in by_status.items() if "example" in answer},
    )


@cache
def _all() -> dict[str, Any]:
    place = installed("octokit", Path(__file__).resolve().parent, _take, key=Path(__file__).read_text())
    found: dict[str, Any] = json.loads((place / _TAKEN).read_text())
    return found


def _take(work: Path) -> None:
    """Write down the operations, and remove the rest."""
    described = json.loads((work / _DESCRIPTION).read_text())
    taken = {f"{method} {path}": _taken(described, described["paths"][path][method.lower()]) for method, path in OPERATIONS}
    (work / _TAKEN).write_text(json.dumps(taken))
    shutil.rmtree(work / "node_modules")


def _taken(described: Any, found: Any) -> dict[str, Any]:
    parameters = [_resolved(described, each) for each in found.get("parameters", ())]
    request = found.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    return {
        "request": None if request is None else _json_schema(described, request),
        "query": [each["name"] for each in parameters if each["in"] == "query"],
        "answers": {status: _answer(described, _resolved(described, answer)) for status, answer in found["responses"].items()},
    }


def _answer(described: Any, answer: Any) -> dict[str, Any]:
    content = answer.get("content", {}).get("application/json", {})
    taken: dict[str, Any] = {"schema": _json_schema(described, content["schema"])} if "schema" in content else {}
    for example in list(content.get("examples", {}).values())[:1]:
        taken["example"] = _resolved(described, example)["value"]
    return taken


def _resolved(described: Any, value: Any) -> Any:
    """Follow a reference inside the description."""
    while isinstance(value, dict) and "$ref" in value:
        found = described
        for part in value["$ref"].removeprefix("#/").split("/"):
            found = found[part.replace("~1", "/").replace("~0", "~")]
        value = found
    return value


def _json_schema(described: Any, schema: Any) -> Any:
    """Return a schema of OpenAPI 3.0 as JSON Schema: references written in place, `nullable` as a type of its own."""
    schema = _resolved(described, schema)
    if not isinstance(schema, dict):
        return schema
    found: dict[str, Any] = {}
    for name, value in schema.items():
        if name == "properties":
            found[name] = {key: _json_schema(described, each) for key, each in value.items()}
        elif isinstance(value, list):
            found[name] = [_json_schema(described, each) for each in value] if name in ("allOf", "anyOf", "oneOf") else value
        elif name not in _WORDS and name != "nullable":
            found[name] = _json_schema(described, value) if isinstance(value, dict) else value
    return {"anyOf": [found, {"type": "null"}]} if schema.get("nullable") else found
