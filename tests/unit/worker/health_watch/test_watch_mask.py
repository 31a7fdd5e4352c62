"""What is said of a watched target is masked by what its objects hold: read once a commit, tried again after a pause."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from typing import Any, cast

from handler.engine.planner.members import Members
from handler.model.errors import ClusterUnavailable
from handler.model.names import GroupKind, Identity
from handler.worker.health_watch.watch_mask import LEFT_OUT, WatchMask

TOKEN = "s3cr3t-of-the-shop"
SECRET = Identity("", "Secret", "shop", "token")
TEXT = f"Deployment/shop/web: refused {TOKEN}"
PAUSE = 60.0


class Live:
    """The target's objects, as a cluster lists them, or can't."""

    def __init__(self) -> None:
        """All can be listed."""
        self.lists = 0
        self.away = False

    def listed(self, kinds: Iterable[GroupKind]) -> list[dict[str, Any]]:
        """List them."""
        self.lists += 1
        if self.away:
            raise ClusterUnavailable.of("cluster", "is away")
        assert set(kinds) == {SECRET.group_kind}
        data = {"token": b64encode(TOKEN.encode()).decode()}
        return [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token", "namespace": "shop"}, "data": data}]


def _said(mask: WatchMask, commit: str, now: float) -> str:
    return mask.of(commit, frozenset({SECRET}), now, PAUSE)(TEXT)


def test_what_objects_hold_is_hidden_and_read_once_a_commit() -> None:
    live = Live()
    mask = WatchMask(str, lambda: cast("Members", live))
    first, again = _said(mask, "a" * 40, 0), _said(mask, "a" * 40, 1)
    assert TOKEN not in first
    assert first.startswith("Deployment/shop/web: refused ")
    assert (again, live.lists) == (first, 1)


def test_a_commit_soon_after_another_is_read_at_once() -> None:
    live = Live()
    mask = WatchMask(str, lambda: cast("Members", live))
    first = _said(mask, "a" * 40, 0)
    assert _said(mask, "b" * 40, 1) == first
    assert live.lists == 2


def test_what_cannot_be_read_is_left_out_and_tried_again_after_the_pause() -> None:
    live = Live()
    mask, live.away = WatchMask(str, lambda: cast("Members", live)), True
    left_out = f"Deployment/shop/web: {LEFT_OUT}"
    assert [_said(mask, "a" * 40, now) for now in (0, PAUSE - 1)] == [left_out, left_out]
    assert live.lists == 1
    live.away = False
    assert TOKEN not in (seen := _said(mask, "a" * 40, PAUSE))
    assert seen != left_out
