"""The cloud functions out of their package, each a process that Lambda's runtime starts: from a signed push to the recorded commit."""

from __future__ import annotations

import base64
import json
import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import boto3
import pytest

from handler.cluster.connect import ClusterConnection
from infra.lambdaruntime import Function
from infra.moto import Moto
from tests.e2e.api_proxy import Wired, is_write
from tests.e2e.conftest import OpenFleet
from tests.e2e.heartbeats import looked_after
from tests.e2e.many_targets import Fleet
from tests.e2e.one_target import STATES
from tests.e2e.serve_process import SECRET, TOKEN, signed
from tests.packing import host
from tests.patience import PATIENCE, until
from tests.rooms.cluster.faulty_proxy import Handler

MB = 1_000_000
PATIENT = {"leaseDuration": "15s"}
"""No worker dies here, and no busy one loses its Lease."""
WORKER = 160 * MB
"""What the worker may hold, on any machine; resident memory is no matter of load."""
PAGE, KEY, ADA = "https://anneal.example.com", "page-key-0123456789abcdef0123456789abcdef", "ada-token-0123456789"
FORM = {"Origin": PAGE, "Content-Type": "application/x-www-form-urlencoded"}


@dataclass
class Deployed:
    """The functions of one fleet behind one queue. `queue`: its URL; `sqs`: how tests play the event source mapping."""

    task: Path
    environ: dict[str, str]
    queue: str
    sqs: Any
    place: Path
    functions: dict[str, Function] = field(default_factory=dict)
    began: float = 0.0
    """When the last invocation began, in monotonic seconds."""

    def invoke(self, name: str, event: Any, seconds: float = PATIENCE) -> Any:
        if name not in self.functions:
            self.functions[name] = Function(f"handler.functions.{name}", self.task, self.environ, self.place / f"{name}.log")
        self.began = time.monotonic()
        answer = self.functions[name].invoke(event, seconds)
        print(f"{name}: {time.monotonic() - self.began:.2f} s, {self.functions[name].peak() / MB:.0f} MB at most")  # noqa: T201 - with -s they are read
        return answer

    def ask(self, name: str, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None) -> tuple[int, Any]:
        """Send what a function URL would; return status and JSON."""
        answer = self.invoke(name, http_event(method, path, body, headers or {}))
        text = answer["body"]
        return answer["statusCode"], json.loads(base64.b64decode(text) if answer.get("isBase64Encoded") else text)

    def page(self, method: str, path: str, cookie: str = "", **form: str) -> tuple[dict[str, Any], str]:
        """Send what a browser would; return the answer and its text."""
        headers = (FORM if form else {}) | ({"Cookie": cookie} if cookie else {})
        answer = self.invoke("api", http_event(method, path, urlencode(form).encode(), headers))
        text = answer["body"]
        return answer, base64.b64decode(text).decode() if answer["isBase64Encoded"] else text

    def deliver(self, seconds: float = PATIENCE) -> list[bool]:
        """Hand the messages that wait to the worker, one at a time; delete what it doesn't report. Returns what was deleted."""
        deleted = []
        for message in self.received():
            answer = self.invoke("worker", {"Records": [record(message)]}, seconds)
            again = {each["itemIdentifier"] for each in answer["batchItemFailures"]}
            assert again <= {message["MessageId"]}
            if not again:
                self.sqs.delete_message(QueueUrl=self.queue, ReceiptHandle=message["ReceiptHandle"])
            else:
                self.sqs.change_message_visibility(QueueUrl=self.queue, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0)
            deleted.append(not again)
        return deleted

    def received(self) -> list[dict[str, Any]]:
        answer = self.sqs.receive_message(QueueUrl=self.queue, MaxNumberOfMessages=10, AttributeNames=["All"])
        return list(answer.get("Messages", []))

    def close(self) -> None:
        for function in self.functions.values():
            function.stop()


def http_event(method: str, path: str, body: bytes, headers: dict[str, str]) -> dict[str, Any]:
    """Return an event of a function URL, payload format 2.0."""
    http = {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1", "userAgent": "test"}
    return {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {**{name.lower(): value for name, value in headers.items()}, "host": "id.lambda-url.eu-central-1.on.aws"},
        "requestContext": {"http": http, "stage": "$default", "requestId": "r", "accountId": "anonymous"},
        "body": base64.b64encode(body).decode(),
        "isBase64Encoded": True,
    }


def codecommit_event(fleet: Fleet, sha: str) -> dict[str, Any]:
    """Return what EventBridge sends of a push, of a repository that a mirror on CodeCommit would have."""
    ref = fleet.ref(0)
    detail = {
        "event": "referenceUpdated",
        "repositoryName": fleet.name,
        "referenceType": "branch",
        "referenceFullName": ref,
        "commitId": sha,
    }
    return {
        "id": "8ebb1e6d-0000-4000-8000-000000000000",
        "source": "aws.codecommit",
        "detail-type": "CodeCommit Repository State Change",
        "region": "eu-central-1",
        "detail": {**detail, "callerUserArn": "arn:aws:iam::123456789012:user/ada"},
    }


def record(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message as an event source mapping hands it over."""
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": message["Attributes"],
        "messageAttributes": {},
        "md5OfBody": message["MD5OfBody"],
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:eu-central-1:123456789012:anneal.fifo",
        "awsRegion": "eu-central-1",
    }


@pytest.fixture
def deploy(moto: Moto, tmp_path: Path) -> Iterator[Callable[..., Deployed]]:
    """Deploy the functions for a fleet: its secrets and its kubeconfig in Amazon's stores, no file and no environment variable."""
    made: list[Deployed] = []

    def deployed(fleet: Fleet, kubeconfig: Path) -> Deployed:
        secrets, parameters, sqs = (boto3.client(name, **moto.client) for name in ("secretsmanager", "ssm", "sqs"))
        secrets.create_secret(Name=f"{fleet.name}/hook", SecretString=json.dumps({"github": SECRET}))
        secrets.create_secret(Name=f"{fleet.name}/kubeconfig", SecretString=kubeconfig.read_text())
        parameters.put_parameter(Name=f"/{fleet.name}/ops", Value=TOKEN, Type="SecureString")
        parameters.put_parameter(Name=f"/{fleet.name}/page", Value=KEY, Type="SecureString")
        parameters.put_parameter(Name=f"/{fleet.name}/ada", Value=ADA, Type="SecureString")
        settings = json.loads(fleet.config.read_text())
        settings["webhooks"] = {"github": {"secrets": [{"awsSecretsManager": {"id": f"{fleet.name}/hook", "key": "github"}}]}}
        settings["replay"] = {"tokens": [{"name": "ops", "secret": {"awsParameter": f"/{fleet.name}/ops"}, "may": ["replay", "read"]}]}
        settings["page"] = {
            "url": PAGE,
            "key": {"awsParameter": f"/{fleet.name}/page"},
            "tokens": [{"name": "ada", "secret": {"awsParameter": f"/{fleet.name}/ada"}}],
            "roles": [{"role": "operator", "users": ["ada"]}],
        }
        for target in settings["targets"]:
            target["repository"]["aliases"] = [f"codecommit::eu-central-1://{fleet.name}"]
            target["cluster"] = {"kubeconfig": {"awsSecretsManager": {"id": f"{fleet.name}/kubeconfig"}}}
        config = tmp_path / "anneal.yaml"
        config.write_text(json.dumps(settings))
        queue = sqs.create_queue(QueueName=f"{fleet.name}.fifo", Attributes={"FifoQueue": "true", "VisibilityTimeout": "360"})["QueueUrl"]
        environ = {
            "PATH": os.environ["PATH"],
            "ANNEAL_CONFIG": str(config),
            "ANNEAL_QUEUE_URL": queue,
            **moto.environment,
        }
        made.append(Deployed(host()[1], environ, queue, sqs, tmp_path))
        return made[-1]

    yield deployed
    for each in made:
        each.close()


def push(deployed: Deployed, fleet: Fleet, version: int) -> str:
    """Push a version of the only target, and tell the webhook function; return the run that it names."""
    sha = fleet.move(0, version)
    body, headers = signed(fleet.url, fleet.ref(0), sha)
    status, answer = deployed.ask("webhook", "POST", "/webhooks/github", body, headers)
    assert status == 202, answer
    (matched,) = answer["matched"]
    return str(matched["run"])


def test_a_signed_push_becomes_a_recorded_commit_and_people_can_read_it(
    open_fleet: OpenFleet, deploy: Callable[..., Deployed], control_plane: Path
) -> None:
    fleet = open_fleet(1, settings={"interval": "1m", **PATIENT})
    deployed = deploy(fleet, control_plane)
    unsigned = deployed.ask("webhook", "POST", "/webhooks/github", b"{}", {"Content-Type": "application/json", "X-GitHub-Event": "push"})
    assert unsigned[0] == 401
    assert deployed.received() == []

    run = push(deployed, fleet, 3)
    assert deployed.deliver() == [True]
    assert fleet.behind() == []
    looks: list[Any] = []

    def looked() -> Any:
        """Read the target; on a busy machine the cluster may be late for one look."""
        looks.append(deployed.ask("api", "GET", f"/api/targets/{fleet.target(0)}", headers={"Authorization": f"Bearer {TOKEN}"}))
        return not looks[-1][1].get("trouble")

    until(looked)
    status, read = looks[-1]
    assert status == 200
    assert read["state"]["commit"] == fleet.commits[0, 3]
    assert [entry["id"] for entry in read["state"]["history"]] == [run]
    assert deployed.ask("api", "GET", f"/api/targets/{fleet.target(0)}")[0] == 401

    fleet.move(0, 2)  # a push that no event reports
    minute = {"time": "2026-11-21T12:00:00Z", "source": "aws.events", "detail-type": "Scheduled Event"}
    told = deployed.invoke("tick", minute)
    assert told["ticks"] in (1, 2), "a tick, and for some names a drift run of the minute before"
    names = {each.name for each in fleet.reader.settings.targets}
    # One cluster may hold a minute up for seconds alone, which a busy machine needs: it gets its heartbeat with the next.
    until(lambda: looked_after(fleet.kubectl, STATES) >= names or not deployed.invoke("tick", minute))
    assert [done for _ in range(told["ticks"]) for done in deployed.deliver()] == [True] * told["ticks"]
    assert fleet.behind() == []

    told = deployed.invoke("codecommit", codecommit_event(fleet, fleet.move(0, 4)))
    assert [matched["target"] for matched in told["matched"]] == [fleet.target(0)]
    assert deployed.deliver() == [True]
    assert fleet.behind() == []
    assert deployed.functions["worker"].peak() <= WORKER


def test_a_person_signs_in_sees_what_a_push_would_change_and_runs_it(
    open_fleet: OpenFleet, deploy: Callable[..., Deployed], control_plane: Path
) -> None:
    fleet = open_fleet(1, settings=PATIENT)
    deployed = deploy(fleet, control_plane)
    push(deployed, fleet, 3)
    assert deployed.deliver() == [True]
    answer, _ = deployed.page("POST", "/ui/login", token=ADA, next="/")
    assert (answer["statusCode"], answer["headers"]["location"]) == (303, "/")
    (cookie,) = (text.partition(";")[0] for text in answer["cookies"])
    assert f'id="row-{fleet.target(0)}"' in deployed.page("GET", "/", cookie)[1]
    fleet.move(0, 2)
    address = f"/ui/targets/{fleet.target(0)}"
    for tab in ("", "/gap", "/inventory", "/orphans", "/history", "/events"):
        assert deployed.page("GET", address + tab, cookie)[0]["statusCode"] == 200
    shown = deployed.page("GET", f"{address}/replay", cookie)[1]
    assert "2 objects deleted" in shown
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', shown))
    assert deployed.received() == []
    assert deployed.page("POST", f"{address}/replay", cookie, **fields)[0]["statusCode"] == 303
    assert deployed.deliver() == [True]
    assert fleet.behind() == []
    state = fleet.state(0)
    assert state
    assert (state.history[0].trigger, state.history[0].actor) == ("replay", "ada")
    assert deployed.page("GET", "/", cookie.replace("=", "=x"))[0]["statusCode"] == 303


def test_a_run_that_cannot_finish_in_time_is_finished_by_the_next_invocation(
    open_fleet: OpenFleet, deploy: Callable[..., Deployed], connection: ClusterConnection, tmp_path: Path
) -> None:
    """Its first write is held until the function has asked the run to end: the attempt stays open, the message comes again."""
    fleet = open_fleet(1, settings=PATIENT)
    wired = Wired.over(connection, tmp_path / "wire")
    try:
        deployed = deploy(fleet, wired.kubeconfig)
        push(deployed, fleet, 3)
        assert deployed.deliver() == [True]
        push(deployed, fleet, 2)  # changes one object and prunes two
        left = 0.0

        def held(_handler: Handler) -> bool:
            time.sleep(max(deployed.began + left + 0.5 - time.monotonic(), 0.0))
            return True

        for left in (3.0, 20.0, 60.0):  # a busy machine may take longer to its first write
            wired.meet(1, held, lambda method, path: is_write(method, path) and f"/namespaces/{fleet.name}/" in path)
            assert deployed.deliver(seconds=left + 22.0) == [False]
            if wired.count:
                break
        state = fleet.state(0)
        assert state
        assert state.attempt
        assert state.commit == fleet.commits[0, 3]
        assert deployed.deliver() == [True]
        assert fleet.behind() == []
    finally:
        wired.close()
