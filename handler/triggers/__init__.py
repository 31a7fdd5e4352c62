"""Bytes and headers become a verified Event. No I/O, no framework: a test needs no server.

The law of the room: the raw body is verified before anything in it is read, and whatever a sender sends
ends as an Event or as one of `BadSignature` and `BadPayload`, never as another exception.
A new provider is one file with `proves` and `parse`, and one row here. The row is chosen by the URL's path, never by a header.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from handler.model.event import Event
from handler.triggers import github, gitlab
from handler.triggers.signature import Secret


@dataclass(frozen=True, slots=True)
class Trigger:
    """A provider. `proves(headers, body, secret)`: that secret signed it; `parse(headers, body, secrets)`: the verified Event."""

    proves: Callable[[Mapping[str, str], bytes, Secret], bool]
    parse: Callable[[Mapping[str, str], bytes, Sequence[Secret]], Event]


TRIGGERS: Mapping[str, Trigger] = {
    "github": Trigger(github.proves, github.parse),
    "gitlab": Trigger(gitlab.proves, gitlab.parse),
}
