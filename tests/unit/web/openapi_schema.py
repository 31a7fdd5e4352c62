"""The OpenAPI document as the door serves it, and the schemas in it."""

from __future__ import annotations

from typing import Any

from tests.fakes.signed_webhooks import SECRETS, Kept
from tests.unit.web.door_with_runs import door

BEARER = {"Authorization": f"Bearer {SECRETS['ALL']}"}
APP = door(Kept())
DOCUMENT: dict[str, Any] = APP.test_client().get("/api/openapi.json", headers=BEARER).get_json()


def declared(path: str, status: int, method: str = "get") -> dict[str, Any]:
    """Return the schema of an answer, its references resolvable."""
    answer = DOCUMENT["paths"][path][method]["responses"][str(status)]
    if "$ref" in answer:
        answer = DOCUMENT["components"]["responses"][answer["$ref"].rpartition("/")[2]]
    return {**answer["content"]["application/json"]["schema"], "components": DOCUMENT["components"]}
