"""The functions as the runtime loads them, and the root logger as it was."""

from __future__ import annotations

import importlib
import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

CONFIG: dict[str, Any] = {
    "apiVersion": "anneal.dev/v1alpha1",
    "kind": "Config",
    "webhooks": {"github": {"secrets": [{"env": "GITHUB"}]}},
    "replay": {"tokens": [{"name": "all", "secret": {"env": "ALL"}, "may": ["read", "replay"]}]},
    "targets": [
        {
            "name": "shop-prod",
            "repository": {
                "url": "https://git.example.com/acme/shop.git",
                "aliases": ["codecommit::eu-central-1://shop"],
                "auth": {"basic": {"username": "anneal", "password": {"env": "GIT"}}},
            },
            "namespaces": ["shop"],
        }
    ],
}
QUEUE = "https://sqs.eu-central-1.amazonaws.com/111122223333/anneal.fifo"


@pytest.fixture
def root_logger() -> Iterator[logging.Logger]:
    """The root logger, put back afterwards."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield root
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root_logger: logging.Logger) -> ModuleType:
    """The entry points in a process that has made none of them; their environment names a configuration and a queue, and no secret."""
    (tmp_path / "anneal.yaml").write_text(json.dumps(CONFIG))
    monkeypatch.setenv("ANNEAL_CONFIG", str(tmp_path / "anneal.yaml"))
    monkeypatch.setenv("ANNEAL_QUEUE_URL", QUEUE)
    for name in ("GITHUB", "ALL", "GIT"):
        monkeypatch.delenv(name, raising=False)
    return importlib.reload(importlib.import_module("handler.functions"))


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Callable[[], list[Any]]:
    """What was written to standard output since it was asked last, as JSON a line."""
    return lambda: [json.loads(line) for line in capsys.readouterr().out.splitlines()]
