"""What the server's words quote of sensitive fields is cut, and nothing else of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from handler.cluster.errors import refused
from handler.cluster.quoted_values import without_values

pytestmark = pytest.mark.slow

CANARY = "canary-7f3a9c"
ENV = {"spec": {"containers": [{"env": [{"name": "DB_PASSWORD", "value": CANARY}, {"name": "MODE", "value": "blue"}]}]}}


def cut(text: str, body: Any = None) -> str:
    return without_values(text, json.dumps(body).encode() if body is not None else None)


@pytest.mark.parametrize(
    ("body", "text", "told"),
    [
        (None, 'spec.apiKey: Invalid value: "a\\"b": bad', "spec.apiKey: Invalid value: ***: bad"),
        (None, 'spec.apiKey: Invalid value: "pw": pw is weak, pwned', "spec.apiKey: Invalid value: ***: *** is weak, pwned"),
        (None, 'spec.image: Invalid value: "a:1": bad', 'spec.image: Invalid value: "a:1": bad'),
        (None, '[a.token: Duplicate value: 77, b.image: Not found: "x"]', '[a.token: Duplicate value: ***, b.image: Not found: "x"]'),
        (None, 'spec.token: Invalid value: "null": must be of type string: "null"', None),
        (None, 'spec.passwords[0]: Invalid value: "hunter2": bad', "spec.passwords[0]: Invalid value: ***: bad"),
        (None, 'spec.url: Invalid value: "amqp://ann:hunter2@mq": bad', 'spec.url: Invalid value: "amqp://ann:***@mq": bad'),
        (None, "spec.token: Too long: may not be more than 5 bytes", None),
        (None, 'data[DB_PASSWORD]: Invalid value: "pw": bad', "data[DB_PASSWORD]: Invalid value: ***: bad"),
        (None, 'denied: login with token="abc" failed, user="ann"', 'denied: login with token="***" failed, user="ann"'),
        (ENV, 'spec.containers[1].env[0].value: Invalid value: "x": bad', "spec.containers[1].env[0].value: Invalid value: ***: bad"),
        (ENV, f"x: .spec.env: expected list, got &{{map[A_TOKEN:{CANARY}]}}", "x: .spec.env: expected list, got ***"),
        (ENV, 'spec: Invalid value: v1.Spec{Env:"DB_PASSWORD", V:"a: b"}: immutable', "spec: Invalid value: ***: immutable"),
        (ENV, 'spec: Invalid value: v1.Spec{Image:"a, b"}: immutable', "spec: Invalid value: ***: immutable"),
        ({}, 'spec: Invalid value: v1.Spec{Image:"a, b"}: immutable', None),
        (ENV, f"denied: {CANARY} and blue", "denied: *** and blue"),
        (ENV, "denied: Y2FuYXJ5LTdmM2E5Yw== and canary-7f3a…", "denied: *** and canary-7f3a…"),
        ([{"op": "add", "path": "/spec", "value": ENV["spec"]}], f"denied: {CANARY}", "denied: ***"),
        ({"data": {"password": "data", "token": "password"}}, "no data without password", None),
        ({"spec": {"automountServiceAccountToken": True}}, "true is true", None),
        ({"spec": {"clientSecret": "login"}}, 'secrets "login" not found; login failed', 'secrets "login" not found; *** failed'),
        ({"spec": {"token": [CANARY, {"deep": CANARY}]}}, f"denied: {CANARY}", "denied: ***"),
    ],
)
def test_sensitive_values_are_masked_and_the_message_stays(body: Any, text: str, told: str | None) -> None:
    assert cut(text, body) == (text if told is None else told)


def test_each_value_of_a_typed_patchs_errors_is_masked() -> None:
    text = (
        "failed to create typed patch object (a): errors:\n  .a.token: expected string, got &{two\nlines}\n  .b: expected string, got &{1}"
    )
    assert cut(text) == text.replace("&{two\nlines}", "***")


def test_a_diffs_values_are_masked_and_its_names_kept() -> None:
    before = 'spec: Forbidden: no\n@@ -1,4 +1,4 @@\n   "Name": "A_TOKEN",\n'
    text = before + '-  "Value": "old",\n+  "Value": "new\\"",\n   "Port": 80\n   "x",\n }'
    assert cut(text) == before + '-  "Value": ***,\n+  "Value": ***,\n   "Port": ***\n   ***,\n }'
    unnamed = text.replace("A_TOKEN", "MODE")
    assert cut(unnamed) == unnamed
    assert "old" not in cut(unnamed, ENV)


@pytest.mark.parametrize("char", ["[", ".", " .", "a", '"', "{", "x: Invalid value: {", ' x="', '\n@@ \n- "'])
def test_masking_takes_linear_time(char: str) -> None:
    """A webhook may say anything, and much of it."""
    assert cut(char * 20_000, ENV)


def test_masking_accepts_any_request_body() -> None:
    for sent in (b"", b"{", b"[1, {}]", b"7", b"\xff", b"[" * 100_000):
        assert without_values("denied: no", sent) == "denied: no"


def test_api_refused_hides_sensitive_values_of_the_request() -> None:
    body = {"kind": "Status", "code": 422, "reason": "Invalid", "message": f"admission webhook denied the request: {CANARY}"}
    for code in (400, 403, 409, 422, 500):
        told = refused(code, body, "PATCH", "/apis/apps/v1/namespaces/a/deployments/b", "Deployment/a/b", json.dumps(ENV).encode())
        assert "denied the request: ***" in str(told)
        assert CANARY not in repr(told)
