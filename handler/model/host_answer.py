"""How a git host's API refuses, and the port that its rows are written against.

Law: `said`, what the host said, is for its rows alone, which know its phrases. No message has any of it: the host knows our credentials.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Self

from handler.model.errors import AccessDenied, GitUnavailable, OperatorError

Query = Mapping[str, str | Sequence[str]]
"""Parameters of a request; one of several values is repeated."""


class HostRefusal(OperatorError, code="host-refused"):
    """A git host's API refused what was asked (4xx). `status`: the answer's."""

    status = 0

    @classmethod
    def answered(cls, subject: str, message: str, status: int, said: str = "") -> Self:
        """Make the error of an answer."""
        error = cls.of(subject, message)
        error.status, error.said = status, said
        return error


class HostDenied(AccessDenied):
    """A git host's API doesn't let our credentials do what was asked (401, 403)."""


class HostBusy(GitUnavailable):
    """A git host asks not to be asked again for `pause` seconds."""

    pause = 0.0

    @classmethod
    def until(cls, subject: str, message: str, pause: float) -> Self:
        """Make the error of an answer that asks for a pause."""
        error = cls.of(subject, f"{message}; again in {pause:.0f} s")
        error.pause = pause
        return error


class JsonApi(Protocol):
    """Asks a host's API below its URL (`handler.source.host_api.HostApi`). `subject`: how errors name it; `url`: where it is.

    `needs`: what a token must be allowed to do for that, as the fix of a refusal says it.
    """

    subject: str
    url: str

    def get(self, path: str, query: Query | None = None, needs: str = "") -> Any:
        """Return the JSON at a path; None: an answer without content. Raises as `send`."""

    def send(self, method: str, path: str, body: Any = None, query: Query | None = None, needs: str = "") -> Any:
        """Send one request; return the answer's JSON. Raises HostRefusal, HostBusy, AccessDenied, GitUnavailable, ConfigInvalid."""
