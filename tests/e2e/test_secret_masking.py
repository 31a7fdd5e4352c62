"""Secret values never leave: whatever fails, a planted value is in no result, no record and no log line, in no spelling."""

from __future__ import annotations

import base64
import io
import json
import logging
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest

from handler.app import log
from handler.app.standing import TargetRow
from handler.app.target_status import TargetStatusReader
from handler.cli.follow_up_commands import NOTHING_GIVEN
from handler.cli.next_step import next_step
from handler.cli.target_page import _rows, facts
from handler.config.git_settings import BasicAuth, RepositoryAuth, SecretRef
from handler.config.secrets import resolve_all
from handler.model.event import Job
from handler.model.result import Outcome, Result
from handler.model.to_json import plain
from handler.queues.pending import Work
from handler.worker.worker import Parts, Worker
from infra.githost import Host
from tests.e2e.documents import Document, config_map, secret
from tests.e2e.one_target import STATES, Shop, told

CANARY = "canary/7f3a9c&e1 d2+55b0"
OTHER = "canary/second&88 1c+4e77"
SCRAPED: list[str] = []
"""What each run has left to Prometheus."""


def spellings(value: str) -> set[str]:
    """How a value may be written; base64 wherever it begins in a longer text."""
    raw = value.encode()
    shifted = {base64.b64encode(b"x" * shift + raw).decode()[4:-4] for shift in range(3)}
    return {value, quote(value), quote(value, safe=""), json.dumps(value)[1:-1], raw.hex(), base64.b64encode(raw).decode(), *shifted}


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """What the process logs, as the worker configures it."""
    SCRAPED.clear()
    stream = io.StringIO()
    root = logging.getLogger()
    kept, level = root.handlers[:], root.level
    log.configure(lambda text: text, stream)
    yield stream
    root.handlers[:] = kept
    root.setLevel(level)


def run(shop: Shop, job: Job) -> Result:
    """Run a job as the worker does: its result is logged."""
    results: list[Result] = []

    def keep(asked: Job, *_: object) -> Result:
        results.append(shop.handler.run(asked))
        return results[-1]

    secrets = resolve_all(shop.settings, os.environ, needs={"git"})
    parts = Parts(keep, TargetStatusReader(shop.settings, shop.handler.records, secrets.mask), mask=secrets.mask)
    worker = Worker(shop.settings, parts)
    worker._work(Work.of(job))
    SCRAPED.append(worker._metrics.text())
    return results[0]


def assert_silent(shop: Shop, logged: io.StringIO, *results: Result, planted: Sequence[str] = (CANARY, OTHER)) -> None:
    state = shop.kubectl.tried("get", "cm", f"anneal-{shop.name}", "-n", STATES, "-o", "yaml").stdout
    stored = shop.handler.store(shop.target).read()
    row = TargetRow(shop.target, time.time(), state=stored.state)
    reader = TargetStatusReader(shop.settings, shop.handler.records, str)
    outputs = {
        "results": repr(results),
        "messages": "".join(map(told, results)),
        "state": state,
        "record": repr(stored),
        "status": repr([*_rows(row, NOTHING_GIVEN)]) + next_step(row).text,
        "status as JSON": json.dumps(plain(facts(row, NOTHING_GIVEN))),
        "API": json.dumps(plain([reader.target(shop.name), reader.targets([shop.name])])),
        "metrics": "".join(map(str, SCRAPED)),
        "log": logged.getvalue(),
    }
    assert logged.getvalue(), "the runs were logged"
    found = [(where, text) for where, output in outputs.items() for value in planted for text in spellings(value) if text in output]
    assert found == []


def encoded(value: str) -> str:
    return base64.b64encode(value.encode()).decode()


BROKEN: dict[str, Document] = {
    "data that isn't base64": {"data": {"value": CANARY}},
    "data of the wrong type": {"data": {"value": {"deep": CANARY}}},
    "data as a text": {"data": CANARY},
    "an unknown field": {"dta": {"value": encoded(CANARY)}},
    "a registry login that isn't JSON": {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": encoded(CANARY)}},
    "a key that isn't allowed": {"data": {"a key/bad": encoded(CANARY)}},
    "a label that isn't allowed": {"metadata": {"labels": {"a": "not allowed!"}}, "data": {"value": encoded(CANARY)}},
    "text and data of the wrong kind": {"stringData": {"value": [CANARY]}},
}


@pytest.mark.parametrize("mistake", BROKEN)
def test_a_refused_secret_is_reported_without_its_value(shop: Shop, logged: io.StringIO, mistake: str) -> None:
    body = secret(shop.name, "broken", CANARY)
    metadata = {**body["metadata"], **BROKEN[mistake].get("metadata", {})}
    broken: Document = {key: value for key, value in body.items() if key != "data"} | BROKEN[mistake] | {"metadata": metadata}
    shop.push(broken, config_map(shop.name, "a"))
    results = [run(shop, shop.job()), run(shop, shop.job("drift")), run(shop, shop.job("oneoff", dry_run=True))]
    assert {result.outcome for result in results} == {Outcome.FAILED}
    assert "Secret" in results[0].message or "broken" in results[0].message
    assert_silent(shop, logged, *results)


@pytest.mark.parametrize(
    "text",
    [
        "value: |\n  {canary}\n bad: indent",
        "value: {canary}\nvalue: {canary}",
        "value: !{canary} x",
        "value: !!{canary} x",
        "value: *{canary}",
        "value: &{canary}",
        "value: '{canary}",
        "value: [{canary}",
        "\tvalue: {canary}",
    ],
)
def test_broken_yaml_beside_a_value_is_reported_without_it(shop: Shop, logged: io.StringIO, text: str) -> None:
    canary = "canary7f3a9ce1"
    shop.declare(config_map(shop.name, "a"))
    body = text.replace("{canary}", canary)
    shop.work.write("deploy/secret.yaml", f"apiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\nstringData:\n  {body}\n")
    shop.work.commit("Broken")
    shop.work.push()
    result = run(shop, shop.job())
    assert (result.outcome, result.who) == (Outcome.FAILED, "author"), told(result)
    assert "deploy/secret.yaml:" in result.message
    assert canary not in repr(result) + logged.getvalue()


def test_applying_changing_drifting_and_deleting_a_secret_shows_no_value(shop: Shop, logged: io.StringIO) -> None:
    results = []
    shop.push(secret(shop.name, "s", CANARY), config_map(shop.name, "a"))
    results += [run(shop, shop.job("oneoff", dry_run=True)), run(shop, shop.job())]
    patch = json.dumps({"data": {"value": encoded(OTHER)}, "metadata": {"annotations": {"note": "edited"}}})
    shop.kubectl.run("patch", "secret", "s", "-n", shop.name, "-p", patch)
    shop.configure(drift="report")
    results.append(run(shop, shop.job("drift")))
    assert results[-1].outcome is Outcome.DRIFTED
    assert [item.path for item in shop.state().drift] == ["data.value", "metadata.annotations.note"]
    assert_silent(shop, logged, *results)
    shop.configure(drift="correct")
    results.append(run(shop, shop.job("drift")))
    shop.push(secret(shop.name, "s", OTHER), config_map(shop.name, "a"))
    results.append(run(shop, shop.job()))
    shop.push(config_map(shop.name, "a"))
    results.append(run(shop, shop.job()))
    assert [result.outcome for result in results[-3:]] == [Outcome.APPLIED] * 3
    assert_silent(shop, logged, *results)


def test_taking_over_a_secret_of_kubectl_shows_no_value(shop: Shop, logged: io.StringIO) -> None:
    """Its last-applied annotation holds the whole Secret."""
    shop.kubectl.apply(secret(shop.name, "s", CANARY))
    shop.push(secret(shop.name, "s", OTHER))
    results = [run(shop, shop.job("oneoff", dry_run=True)), run(shop, shop.job())]
    assert results[-1].outcome is Outcome.APPLIED
    assert_silent(shop, logged, *results)


def test_an_immutable_secret_is_refused_without_its_value(shop: Shop, logged: io.StringIO) -> None:
    shop.push(secret(shop.name, "s", CANARY) | {"immutable": True})
    results = [run(shop, shop.job())]
    shop.push(secret(shop.name, "s", OTHER) | {"immutable": True})
    results.append(run(shop, shop.job()))
    assert results[-1].outcome is Outcome.FAILED
    assert "immutable" in results[-1].message
    assert_silent(shop, logged, *results)


def test_a_wrong_git_password_is_reported_without_it(shop: Shop, logged: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_PASSWORD", CANARY)
    shop.push(config_map(shop.name, "a"))
    with Host(Path(shop.work.remote).parent) as locked:
        locked.accounts["ann"] = "another password"
        repository = replace(shop.target.repository, url=locked.url_of(shop.name))
        shop.configure(repository=replace(repository, auth=RepositoryAuth(BasicAuth("ann", SecretRef(env="GIT_PASSWORD")))))
        result = run(shop, shop.job())
        assert (result.outcome, result.code) == (Outcome.FAILED, "access-denied"), told(result)
        assert resolve_all(shop.settings, os.environ, needs={"git"}).mask(CANARY) == "***"
        assert_silent(shop, logged, result)
