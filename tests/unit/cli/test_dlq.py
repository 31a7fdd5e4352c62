"""`anneal work` and `anneal dlq` where there is no queue, or none that has dead letters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import boto3
import pytest
from click.testing import CliRunner, Result

from handler.cli.group import anneal
from handler.model.event import Job
from handler.queues.sqs import SqsQueue
from infra.moto import Moto

pytestmark = pytest.mark.slow

TARGET = {"name": "shop", "repository": {"url": "https://git.example.com/acme/shop.git"}, "namespaces": ["shop"]}


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.delenv("ANNEAL_QUEUE_URL", raising=False)
    path = tmp_path / "anneal.yaml"
    path.write_text(json.dumps({"apiVersion": "anneal.dev/v1alpha1", "kind": "Config", "targets": [TARGET]}))
    return str(path)


def run(config: str, *arguments: str) -> Result:
    return CliRunner().invoke(anneal, ["-c", config, *arguments])


@pytest.mark.parametrize("arguments", [("work",), ("dlq", "list"), ("dlq", "redrive")], ids=" ".join)
def test_without_a_queue_each_says_how_to_name_one(config: str, arguments: tuple[str, ...]) -> None:
    result = run(config, *arguments)
    assert result.exit_code == 1
    assert "queue: none is configured" in result.output
    assert "set ANNEAL_QUEUE_URL or `queue.sqs.url`" in result.output


@pytest.mark.parametrize(
    ("arguments", "seen"),
    [
        (("dlq",), "Missing argument"),
        (("dlq", "drop"), "'drop' is not one of"),
        (("dlq", "list", "--drop-unreadable"), "--drop-unreadable goes with redrive"),
        (("dlq", "redrive", "--target", "shopp"), "did you mean shop?"),
    ],
)
def test_dlq_flags_that_exclude_each_other_are_usage_errors(
    config: str, aws: Moto, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], seen: str
) -> None:
    monkeypatch.setenv("ANNEAL_QUEUE_URL", made(aws, dead=True))
    result = run(config, *arguments)
    assert result.exit_code == 64
    assert seen in result.output


def made(aws: Moto, *, dead: bool) -> str:
    """Make a queue, with dead letters after one try or without any."""
    client = boto3.client("sqs", **aws.client)
    attributes = {"FifoQueue": "true"}
    if dead:
        url = client.create_queue(QueueName="dead.fifo", Attributes=attributes)["QueueUrl"]
        arn = client.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        attributes["RedrivePolicy"] = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 1})
    found: str = client.create_queue(QueueName="anneal.fifo", Attributes=attributes)["QueueUrl"]
    return found


def test_a_queue_without_dead_letters_is_told(config: str, aws: Moto, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANNEAL_QUEUE_URL", made(aws, dead=False))
    result = run(config, "dlq", "list")
    assert result.exit_code == 1
    assert "queue anneal.fifo: has no redrive policy" in result.output


def test_only_the_run_that_is_named_is_asked_for_again(config: str, aws: Moto, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANNEAL_QUEUE_URL", made(aws, dead=True))
    queue = SqsQueue(made(aws, dead=True))
    first, second = (queue.put(Job("shop", "replay", actor=actor)) for actor in ("ada", "bob"))
    gone = queue.put(Job("gone", "replay", actor="ada"))
    for _ in range(3):
        queue.receive(10, 0, 0)
    listed = json.loads(run(config, "dlq", "list", "--run", second, "-o", "json").output)
    assert (listed["waiting"], [row["actor"] for row in listed["letters"]]) == (3, ["bob"])
    again = json.loads(run(config, "dlq", "redrive", "--run", second, "-o", "json").output)
    assert {name: [row["run"] for row in rows] for name, rows in again.items()} == {"again": [second], "dropped": [], "kept": [first, gone]}
    missed = run(config, "dlq", "redrive", "--run", "shop.0123456789ab")
    assert missed.exit_code == 1
    assert "shop.0123456789ab isn't among the 2 that can be seen now: of one target ten are shown" in missed.output
    unknown = run(config, "dlq", "redrive", "--run", gone)
    assert (unknown.exit_code, f"{gone} asks for gone, which isn't configured here" in unknown.output) == (1, True)
    rest = run(config, "dlq", "redrive")
    assert f"asked for again: shop, replay as {first}" in rest.output
    assert f"left: gone, replay as {gone}" in rest.output


@pytest.mark.parametrize("act", [{"commit": "a" * 40}, {"unpin": True}, {"rollback": True}, {"approve": "h1"}, {"force": True}], ids=str)
def test_a_dead_letter_with_a_commit_or_an_approval_is_redriven_by_run_alone(
    config: str, aws: Moto, monkeypatch: pytest.MonkeyPatch, act: dict[str, Any]
) -> None:
    monkeypatch.setenv("ANNEAL_QUEUE_URL", made(aws, dead=True))
    queue = SqsQueue(made(aws, dead=True))
    plain, decides = queue.put(Job("shop", "replay", actor="ada", dry_run=True)), queue.put(Job("shop", "replay", actor="bob", **act))
    for _ in range(3):
        queue.receive(10, 0, 0)
    everything = run(config, "dlq", "redrive")
    assert f"asked for again: shop, replay dry run as {plain}" in everything.output
    assert f"as {decides}; if it is still wanted: anneal dlq redrive --run {decides}" in everything.output
    assert "1 asked for again, 0 deleted, 1 left" in everything.output
    by_name = run(config, "dlq", "redrive", "--run", decides)
    assert (by_name.exit_code, "1 asked for again, 0 deleted, 0 left" in by_name.output) == (0, True)
