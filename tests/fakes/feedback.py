"""Feedback without threads: an announcement is reported before it returns."""

from __future__ import annotations

from handler.app.run_events import RunEvents
from handler.model.run_event import RunEvent


class AtOnce(RunEvents):
    """Its subscribers run on the announcing thread. `names`: rows of `FEEDBACK` without arguments."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        for name in names:
            self.add(name)

    def announce(self, event: RunEvent) -> None:
        for each in self._subscriptions.values():
            if isinstance(event, each._subscriber.hears):
                each._subscriber.hear(event)
