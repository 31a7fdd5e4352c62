"""Answers questions about targets, each computed once however many ask at the same time."""

from __future__ import annotations

from dataclasses import dataclass

from handler.app.build import Handler


@dataclass(frozen=True, slots=True)
class Inspector:
    """The questions, a method each. Safe to share between threads. `handler`: the way to clusters and git hosts."""

    handler: Handler
