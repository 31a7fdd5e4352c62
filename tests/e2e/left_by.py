"""What Flux, Argo CD and kapp leave on a cluster, kept in `left_by_tools/`, and brought about again by requests such as theirs.

Each object is kept with the fields that the tool owns and its managedFields, without times and without what controllers of Kubernetes
wrote. It is sent by the same verb and field manager, once for each entry; then its managedFields must be the kept ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.e2e.documents import Document
from tests.kubectl import Kubectl

KEPT = Path(__file__).parent / "left_by_tools"
Fields = Mapping[str, Any]


def left_by(tool: str) -> list[Document]:
    """Return the objects that a tool has left, as they are kept."""
    found: list[Document] = json.loads((KEPT / f"{tool}.json").read_text())["objects"]
    return found


def entries(live: Document) -> list[Document]:
    """Return the managedFields of those who deploy: without times, and without what was written by a subresource."""
    found = live["metadata"].get("managedFields", [])
    return [{key: value for key, value in each.items() if key != "time"} for each in found if not each.get("subresource")]


def bring_about(kubectl: Kubectl, tool: str) -> list[Document]:
    """Send what a tool sends, and return the objects as they are kept; the API server has noted each writer as it was."""
    kept = left_by(tool)
    for body in kept:
        for entry in entries(body):
            sent = owned(body, entry["fieldsV1"]) | {"apiVersion": body["apiVersion"], "kind": body["kind"]}
            sent["metadata"] = {**sent.get("metadata", {}), **{key: body["metadata"][key] for key in ("name", "namespace")}}
            verb = ["apply", "--server-side", "--force-conflicts"] if entry["operation"] == "Apply" else ["create"]
            kubectl.run(*verb, f"--field-manager={entry['manager']}", "-f", "-", given=json.dumps(sent))
        place = (body["kind"], body["metadata"]["name"], "-n", body["metadata"]["namespace"])
        live = kubectl("get", *place, "--show-managed-fields")
        assert entries(live) == entries(body), f"{tool}: {place}"
    return kept


def owned(value: Any, fields: Fields) -> Any:
    """Return the part of a value that fieldsV1 names."""
    if not fields or not isinstance(value, dict | list):
        return value
    inner = {key: sub for key, sub in fields.items() if key != "."}
    if isinstance(value, list):
        return list(_items(value, inner))
    named = {key.removeprefix("f:"): sub for key, sub in inner.items()}
    return {key: owned(value[key], sub) for key, sub in named.items() if key in value}


def _items(value: list[Any], fields: Fields) -> Iterator[Any]:
    for key, sub in fields.items():
        kind, _, text = key.partition(":")
        wanted = json.loads(text)
        if kind == "v":
            yield wanted
        else:
            item = next(each for each in value if all(each.get(name, wanted[name]) == wanted[name] for name in wanted))
            yield owned(item, sub)
