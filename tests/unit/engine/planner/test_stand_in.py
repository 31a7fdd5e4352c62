"""What a 409 says of an object that is judged in another's stead; on real servers: `tests/e2e/test_stand_in.py`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from handler.cluster.api import ApiRequest
from handler.cluster.errors import refused
from handler.engine.planner.stand_in import check_elsewhere
from handler.model.errors import ApiRefused
from handler.model.names import Resource

BODY: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "shop"}}
DENIED = 'admission webhook "a.example.com" denied the request: a host is claimed twice'


def check(reason: str, message: str) -> None:
    """Judge an object that has a namesake, and whose create is answered with 409."""

    def expect(request: ApiRequest) -> dict[str, Any]:
        if request.method == "PATCH":
            return {**BODY, "metadata": {**BODY["metadata"], "resourceVersion": "1"}}
        said = {"kind": "Status", "reason": reason, "message": message, "code": 409}
        raise refused(409, said, request.method, request.path, request.name)

    api: Any = SimpleNamespace(expect=expect)
    check_elsewhere(api, Resource("", "v1", "ConfigMap", "configmaps", namespaced=True), dict(BODY))


def test_a_create_that_only_meets_its_namesake_is_judged() -> None:
    check("AlreadyExists", 'configmaps "a" already exists')


@pytest.mark.parametrize("reason", ["Conflict", "", "AlreadyExists"])
def test_a_webhook_that_denies_with_409_has_refused(reason: str) -> None:
    with pytest.raises(ApiRefused, match="denied the request") as caught:
        check(reason, DENIED)
    assert (caught.value.status, caught.value.reason) == (409, reason)
