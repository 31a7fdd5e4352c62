"""What a command meets that speaks to a running server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from handler.model.errors import OperatorError, Problem, TransientError


class ServerRefused(OperatorError):
    """A running Anneal refused what it was asked. `status`: its HTTP status."""

    code = "server-refused"

    def __init__(self, *problems: Problem, status: int = 0) -> None:
        """Keep the status."""
        super().__init__(*problems)
        self.status = status


class ServerUnavailable(TransientError):
    """A running Anneal isn't reached, or can't answer now. `answer`: what it said."""

    code = "server-unavailable"

    def __init__(self, *problems: Problem, answer: Mapping[str, Any] | None = None) -> None:
        """Keep the answer."""
        super().__init__(*problems)
        self.answer = answer or {}
