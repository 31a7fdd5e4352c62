"""The door behind other clouds' adapters: the bytes that were signed arrive there, too."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import azure.functions
import functions_framework
import pytest
import urllib3
from werkzeug.serving import make_server

from handler.queues.sqs import SqsQueue
from tests.fakes.signed_webhooks import SECRETS, github_headers, github_push

INFRA = Path(__file__).resolve().parents[3] / "infra"
RAW = json.dumps({**json.loads(github_push()), "pusher": {"name": "é \u2028 \U0001f600"}}, ensure_ascii=False).encode()
Sent = Callable[..., tuple[int, Any]]


@pytest.fixture
def jobs(functions: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is put into the queue."""
    found: list[Any] = []

    def put_all(_queue: SqsQueue, jobs: Any) -> tuple[str, ...]:
        found.extend(jobs)
        return tuple(f"{job.target}.0a" for job in jobs)

    monkeypatch.setattr(SqsQueue, "put_all", put_all)
    return found


@pytest.fixture
def google(functions: ModuleType) -> Iterator[Sent]:
    """The functions framework's own application, served on loopback."""
    app = functions_framework.create_app("webhook", str(INFRA / "google/main.py"), "http")  # type: ignore[no-untyped-call]  # it has no annotations
    server = make_server("127.0.0.1", 0, app)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    pool = urllib3.PoolManager(retries=False)

    def send(method: str, path: str, headers: dict[str, str], body: bytes = b"", *, chunked: bool = False) -> tuple[int, Any]:
        sent = iter([body[:7], body[7:]]) if chunked else body
        answer = pool.request(method, f"http://127.0.0.1:{server.server_port}{path}", headers=headers, body=sent, chunked=chunked)
        return answer.status, answer.json()

    yield send
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def azures(functions: ModuleType) -> Sent:
    """The function that Azure's worker would call."""
    spec = importlib.util.spec_from_file_location("function_app", INFRA / "azure/function_app.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (function,) = module.app.get_functions()
    (route,) = [binding for binding in function.get_bindings() if binding.type == "httpTrigger"]
    assert (function.get_function_name(), route.route, route.auth_level) == (
        "webhook",
        "/{*route}",
        azure.functions.AuthLevel.ANONYMOUS,
    )

    def send(method: str, path: str, headers: dict[str, str], body: bytes = b"", **_: Any) -> tuple[int, Any]:
        request = azure.functions.HttpRequest(method, f"https://app.azurewebsites.example.com{path}", headers=headers, body=body)
        answer = function.get_user_function()(request, None)
        return answer.status_code, json.loads(answer.get_body())

    return send


@pytest.fixture(params=["google", "azures"])
def send(request: pytest.FixtureRequest, jobs: list[Any], monkeypatch: pytest.MonkeyPatch) -> Sent:
    """Either of them, with its secret."""
    monkeypatch.setenv("GITHUB", SECRETS["GITHUB"])
    found: Sent = request.getfixturevalue(request.param)
    return found


@pytest.mark.parametrize("body", [github_push(), RAW], ids=["push", "raw"])
def test_a_signed_push_is_taken(send: Sent, jobs: list[Any], body: bytes) -> None:
    status, answer = send("POST", "/webhooks/github", github_headers(body), body)
    assert (status, answer["run"]) == (202, "shop-prod.0a")
    assert [job.target for job in jobs] == ["shop-prod"]


def test_a_chunked_push_is_taken(send: Sent, jobs: list[Any]) -> None:
    body = github_push()
    status, _ = send("POST", "/webhooks/github", github_headers(body) | {"Transfer-Encoding": "chunked"}, body, chunked=True)
    assert (status, len(jobs)) == (202, 1)


def test_only_the_paths_of_the_webhook_function_are_served(send: Sent) -> None:
    assert send("GET", "/healthz", {}) == (200, {"web": "ok"})
    assert [send("GET", path, {})[0] for path in ("/api/targets", "/metrics", "/")] == [404, 404, 404]


def test_without_its_secret_a_function_answers_503_not_started(google: Sent, monkeypatch: pytest.MonkeyPatch) -> None:
    status, answer = google("GET", "/healthz", {})
    assert (status, answer["code"]) == (503, "not-started")
    monkeypatch.setenv("GITHUB", SECRETS["GITHUB"])
    assert google("GET", "/healthz", {})[0] == 200


@pytest.mark.parametrize("name", ["google/main.py", "azure/function_app.py"])
def test_their_configuration_lies_beside_them(functions: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    monkeypatch.delenv("ANNEAL_CONFIG")
    path = shutil.copy(INFRA / name, tmp_path)
    spec = importlib.util.spec_from_file_location("deployed", path)
    assert spec
    assert spec.loader
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    assert os.environ["ANNEAL_CONFIG"] == str(tmp_path / "anneal.yaml")
