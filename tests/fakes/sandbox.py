"""A sandbox without a child process, for tests whose manifests are their own and whose threads or clocks allow no fork."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from handler.render.functions import FUNCTIONS

T = TypeVar("T")


class InProcess:
    """A Sandbox without a child: what it reads here is our own."""

    def run(
        self, function: str, options: Mapping[str, Any], parts: Sequence[bytes], decode: Callable[[bytes], T], subject: str = ""
    ) -> list[T]:
        return [decode(frame) for frame in FUNCTIONS[function](options, parts)]
