"""Planted secret values, all their spellings, and the places in which none may be found."""

from __future__ import annotations

import base64
import io
import json
import logging
import time
from collections.abc import Iterator, Sequence
from urllib.parse import quote

import pytest

from handler.app import log
from handler.app.target_row import TargetRow
from handler.app.target_status import TargetStatusReader
from handler.cli.follow_up_commands import NOTHING_GIVEN
from handler.cli.next_step import next_step
from handler.cli.target_page import _rows, facts
from handler.model.event import Job
from handler.model.result import Result
from handler.model.to_json import plain
from handler.queues.pending import Work
from handler.worker.worker import Parts, Worker
from tests.e2e.one_target import STATES, Shop, told
from tests.patience import PATIENCE

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
    log.configure(stream)
    yield stream
    root.handlers[:] = kept
    root.setLevel(level)


def run(shop: Shop, job: Job) -> Result:
    """Run a job as the worker does: its result is logged."""
    results: list[Result] = []

    def keep(asked: Job, *_: object) -> Result:
        results.append(shop.handler.run(asked))
        return results[-1]

    parts = Parts(keep, TargetStatusReader(shop.settings, shop.handler.records))
    worker = Worker(shop.settings, parts)
    worker._work(Work.of(job))
    SCRAPED.append(worker._metrics.text())
    return results[0]


def surfaces(shop: Shop, logged: io.StringIO, *results: Result) -> dict[str, str]:
    """Return the text of all that shows results and the record to people and programs."""
    state = shop.kubectl.tried("get", "cm", f"anneal-{shop.name}", "-n", STATES, "-o", "yaml").stdout
    stored = shop.handler.store(shop.target).read()
    row = TargetRow(shop.target, time.time(), state=stored.state)
    reader = TargetStatusReader(shop.settings, shop.handler.records, PATIENCE)
    assert logged.getvalue(), "the runs were logged"
    return {
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


def assert_silent(shop: Shop, logged: io.StringIO, *results: Result, planted: Sequence[str] = (CANARY, OTHER)) -> None:
    outputs = surfaces(shop, logged, *results)
    found = [(where, text) for where, output in outputs.items() for value in planted for text in spellings(value) if text in output]
    assert found == []


def assert_plans_silent(results: Sequence[Result], planted: Sequence[str] = (CANARY, OTHER)) -> None:
    """Look through all plans; there is more than one."""
    shown = [json.dumps(plain(result.plan)) for result in results if result.plan]
    assert len(shown) > 1
    assert [text for text in shown for value in planted for each in spellings(value) if each in text] == []
