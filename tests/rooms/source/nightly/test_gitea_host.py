"""A real Gitea as the counterpart of tests: what is pushed to it is fetched, what it sends is proven, what it takes is there again."""

from __future__ import annotations

from typing import Any

import pytest

from handler.triggers import WEBHOOKS
from tests.fakes.host_webhooks import KEYS, Sample, accepted
from tests.rooms.source.test_gitea_host import RECORDED, life  # noqa: F401 - fixtures, too
from tests.webhook_inbox import Delivery


@pytest.mark.parametrize("sample", RECORDED.values(), ids=str)
def test_our_samples_are_what_a_gitea_sends(life: dict[str, Delivery], sample: Sample) -> None:
    come = life[sample.name]
    assert fields(come.document) == fields(sample.document)
    sent = {name for name in come.headers if name.startswith("X-")}
    assert sent == {name for name in sample.headers if name.startswith("X-")}
    event, _ = WEBHOOKS["gitea"].verified(come.headers, come.body, accepted(KEYS["GITEA"]))
    assert (event.kind, event.delivery) == (sample.kind, come.headers["X-Gitea-Delivery"])


def fields(value: Any, place: str = "") -> set[str]:
    """Return the paths of all that a document has, with its literals of an event: its action, and whose it is."""
    if isinstance(value, dict):
        return {found for name, each in value.items() for found in fields(each, f"{place}.{name}")}
    if isinstance(value, list):
        return {found for each in value for found in fields(each, f"{place}[]")} | {place}
    return {f"{place}={value}" if place in (".action", ".is_pull", ".pull_request.state", ".pull_request.merged") else place}
