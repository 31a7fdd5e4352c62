"""What a person asks of a target by name, and what another run has left in its record."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from handler.app.build import Handler
from handler.model.event import Job
from handler.model.result import Result


def asked(handler: Handler, run: str = "shop.asked", **about: Any) -> Result:
    return handler.run(Job("shop", "replay", actor="ann", run=run, **about))


def leave(handler: Handler, **parts: Any) -> None:
    """Let the record be as another run has left it."""
    handler.store(handler.target("shop")).update(lambda state: replace(state, **parts))
