"""What it costs to find out that a delivery proves nothing: large bodies by many secrets wait for their turn, small ones don't."""

from __future__ import annotations

import threading

import pytest

from handler.config.secrets import Accepted, Secret
from handler.model.errors import BadSignature, TooLarge, TooManyRequests
from handler.model.target_matching import TargetIndex
from handler.triggers import WEBHOOKS
from handler.web import delivery_decision
from handler.web.delivery_decision import DeliveryDecision, judge
from tests.fakes.signed_webhooks import SECRETS, github_headers, github_push
from tests.patience import PATIENCE, until

BODY = github_push()
NOBODY = TargetIndex(())


class Watched(Secret):
    """A secret that says when it is used, and waits."""

    __slots__ = ()
    used, go = threading.Semaphore(0), threading.Event()

    def reveal(self) -> str:
        self.used.release()
        assert self.go.wait(PATIENCE)
        return super().reveal()


def judged(*secrets: Secret, body: bytes = BODY) -> DeliveryDecision:
    return judge(WEBHOOKS["github"], github_headers(body), body, [Accepted(secret, frozenset()) for secret in secrets], NOBODY)


def test_large_bodies_by_many_secrets_are_verified_one_at_a_time_and_small_ones_beside_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery_decision, "LARGE", 2 * len(BODY))
    monkeypatch.setattr(delivery_decision, "PATIENCE", 0.05)
    right, wrong, slow = Secret(SECRETS["GITHUB"]), Secret("another-secret-0123"), Watched("a-third-secret-0123")
    refused: list[BaseException] = []
    slow.go.clear()

    def large() -> None:
        try:
            judged(slow, wrong, wrong)
        except BadSignature as error:
            refused.append(error)

    first = threading.Thread(target=large)
    first.start()
    try:
        assert slow.used.acquire(timeout=PATIENCE)
        with pytest.raises(TooManyRequests, match="other large ones"):
            judged(right, wrong, wrong)
        assert judged(right, wrong).event.kind == "push"
    finally:
        slow.go.set()
        first.join(PATIENCE)
    assert len(refused) == 1
    assert judged(right, wrong, wrong).event.kind == "push", "its turn is given back"


def test_no_more_large_bodies_wait_than_leave_threads_for_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery_decision, "LARGE", 2 * len(BODY))
    monkeypatch.setattr(delivery_decision, "PATIENCE", PATIENCE)
    right, wrong, slow = Secret(SECRETS["GITHUB"]), Secret("another-secret-0123"), Watched("a-third-secret-0123")
    ended: list[object] = []
    slow.go.clear()

    def large() -> None:
        try:
            ended.append(judged(slow, wrong, wrong))
        except (BadSignature, TooManyRequests) as error:
            ended.append(error)

    in_line = [threading.Thread(target=large) for _ in range(delivery_decision.LINE)]
    for each in in_line:
        each.start()
    try:
        assert slow.used.acquire(timeout=PATIENCE)
        until(lambda: not delivery_decision._line._value)
        with pytest.raises(TooManyRequests, match="other large ones"):
            judged(right, wrong, wrong)
        assert ended == [], "it was turned away at once, while all of them are still in line"
    finally:
        slow.go.set()
        for each in in_line:
            each.join(PATIENCE)
    assert [type(each) for each in ended] == [BadSignature] * delivery_decision.LINE


def test_what_all_secrets_together_would_hash_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery_decision, "MOST", 2 * len(BODY))
    right, wrong = Secret(SECRETS["GITHUB"]), Secret("another-secret-0123")
    assert judged(right, wrong).event.kind == "push"
    with pytest.raises(TooLarge, match="so many secrets"):
        judged(right, wrong, wrong)
