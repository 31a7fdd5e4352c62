"""What the tests of queues share: the worker's end of a shared one, the path of its socket, and patience on a busy machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from handler.queues import outbox
from tests.fakes.sqs_side import Side
from tests.patience import PATIENCE


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that is only slow isn't taken for one that is gone: a push would be sent twice, a question fail."""
    monkeypatch.setattr(outbox, "ANSWER_TIMEOUT", PATIENCE)
    monkeypatch.setattr(outbox, "READ_TIMEOUT", PATIENCE)


@pytest.fixture
def side() -> Iterator[Side]:
    made = Side()
    yield made
    made.consumer.stop()
    if made.consumer._keeper.ident:
        made.consumer._keeper.join()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The worker's Unix-domain socket."""
    return tmp_path / "worker.sock"
