"""What waits runs as soon as what it waits for records or becomes healthy: in a server, whose ticks are far apart, and in functions."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from handler.functions.batch import batch
from handler.model.event import Delivery, Job
from handler.queues.sqs import SqsQueue
from handler.render.sandbox import Sandbox
from infra.githost import Host
from infra.moto import Moto
from tests.e2e.documents import deployment
from tests.e2e.ordered_targets import Ordered
from tests.e2e.serve_process import SECRET, Serving
from tests.e2e.workload_status import fated, made_ready
from tests.fakes.aws_events import Context
from tests.fakes.clock import NEVER
from tests.kubectl import Kubectl
from tests.patience import until
from tests.unit.functions.conftest import root_logger

__all__ = ["root_logger"]
RARE = {"interval": "24h", "driftInterval": NEVER, "healthInterval": "2s"}
"""No tick but the first one comes while a test lasts."""


@pytest.fixture
def ordered(host: Host, sandbox: Sandbox, kubectl: Kubectl) -> Iterator[Ordered]:
    made = Ordered.of(f"s-{secrets.token_hex(4)}", host, sandbox, kubectl)
    kubectl.create_namespace(made.space)
    yield made
    kubectl.leave_namespaces(made.space)


@pytest.fixture
def server(ordered: Ordered, tmp_path: Path) -> Iterator[Serving]:
    """A server of both, which has deployed their first versions."""
    for shop in (ordered.infra, ordered.apps):
        ordered.push(shop, "1")
    config = tmp_path / "anneal.json"
    config.write_text(json.dumps(ordered.configuration(**RARE)))
    serving = Serving(config, tmp_path / "serve.log").start().ready()
    until(lambda: ordered.version(ordered.apps) == "1" and is_through(ordered), serving.log.read_text)
    yield serving
    serving.stop()


def is_through(ordered: Ordered) -> bool:
    return all((stored := shop.handler.store(shop.target).read().state) and not stored.attempt for shop in (ordered.infra, ordered.apps))


def pushed(server: Serving, ordered: Ordered, name: str, version: str, *more: Any) -> str:
    shop = {"infra": ordered.infra, "apps": ordered.apps}[name]
    sha = ordered.push(shop, version, *more)
    assert server.push(shop.target.repository.url, "refs/heads/main", sha) == 202
    return sha


def waits(ordered: Ordered, word: str = "") -> bool:
    state = ordered.apps.state()
    return state.status.phase == "waiting" and state.awaits is not None and word in state.awaits.on[0].why


def test_a_push_of_the_dependency_wakes_what_waits_for_it(ordered: Ordered, server: Serving) -> None:
    ordered.push(ordered.infra, "2")  # no webhook has come for it yet
    sha = pushed(server, ordered, "apps", "2")
    until(lambda: waits(ordered, "git is at"), server.log.read_text)
    server.push(ordered.infra.target.repository.url, "refs/heads/main", ordered.infra.head)
    until(lambda: ordered.apps.state().commit == sha, server.log.read_text)
    assert ordered.version(ordered.apps) == "2"
    woken = [line for line in server.lines("wakes") if line["after"] == ordered.infra.name]
    assert woken
    assert all(line["targets"] == [ordered.apps.name] for line in woken)


def test_a_dependency_that_becomes_healthy_wakes_what_waits_for_it(ordered: Ordered, server: Serving) -> None:
    web = fated(deployment(ordered.space, "web"), "never-ready", replicas=1)
    pushed(server, ordered, "infra", "2", web)
    until(lambda: ordered.infra.state().commit == ordered.infra.head, server.log.read_text)
    sha = pushed(server, ordered, "apps", "2")
    until(lambda: waits(ordered, "Deployment/"), server.log.read_text)
    made_ready(ordered.apps.kubectl, ordered.space, "web")
    until(lambda: ordered.apps.state().commit == sha, server.log.read_text)


def test_functions_put_the_tick_of_what_waits_into_the_queue(
    ordered: Ordered, aws: Moto, root_logger: object, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for shop in (ordered.infra, ordered.apps):
        ordered.push(shop, "1")
    config = tmp_path / "anneal.json"
    config.write_text(json.dumps(ordered.configuration()))
    client = boto3.client("sqs", **aws.client)
    url = client.create_queue(QueueName=f"{ordered.space}.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
    monkeypatch.setattr("handler.render.Sandbox", lambda: sandbox)  # one that ends with the session
    worker = batch({"ANNEAL_CONFIG": str(config), "ANNEAL_QUEUE_URL": url, "HOOK": SECRET})

    def deliver() -> list[str]:
        """Hand out what waits in the queue, and return whose it was."""
        taken = []
        for each in client.receive_message(QueueUrl=url, MaxNumberOfMessages=10, AttributeNames=["All"]).get("Messages", []):
            record = {"messageId": each["MessageId"], "receiptHandle": each["ReceiptHandle"], "body": each["Body"]}
            answer = worker({"Records": [record | {"attributes": each["Attributes"]}]}, Context())
            assert answer == {"batchItemFailures": []}
            client.delete_message(QueueUrl=url, ReceiptHandle=each["ReceiptHandle"])
            taken.append(each["Attributes"]["MessageGroupId"])
        return taken

    queue = SqsQueue(url)
    queue.put(push(ordered.apps.name, ordered.apps.head))
    assert deliver() == [ordered.apps.name]
    assert waits(ordered, "never ran")
    assert deliver() == [], "what waits doesn't come again by itself"
    queue.put(push(ordered.infra.name, ordered.infra.head))
    assert deliver() == [ordered.infra.name]
    assert deliver() == [ordered.apps.name]
    assert ordered.version(ordered.apps) == "1"
    assert deliver() == [], "nothing is left to wake"


def push(target: str, sha: str) -> Job:
    delivery = Delivery(secrets.token_hex(4), "github", "refs/heads/main", sha, "ada", "2026-03-01T12:00:00Z")
    return Job(target, "push", hint=sha, actor="ada", deliveries=(delivery,))
