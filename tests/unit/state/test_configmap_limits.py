"""How long a record may be in all, and which times it may name."""

from __future__ import annotations

import json

import pytest

from handler.model.errors import StateInvalid
from handler.state.cluster_port import Body
from handler.state.configmap import decode, encode
from handler.state.record import Progress, State, StepRecord, Suspend
from handler.state.record_format import gzipped_text
from handler.state.store import fitted
from tests.unit.state.samples import NAMESPACE, TOOLING, blank, full, sha


def read(body: Body) -> State:
    return decode(body, NAMESPACE, "shop", TOOLING)


@pytest.mark.parametrize("ending", ["", "x"])
def test_all_parts_of_a_record_share_one_limit_of_length(monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    monkeypatch.setattr("handler.state.configmap.INFLATED", 10_000)
    body = encode(full(), NAMESPACE, TOOLING)
    body["data"] = {key: text for key, text in body["data"].items() if key in ("repository", "target.json")}
    text = gzipped_text(b"[" + b" " * 6_000 + b"]")
    body["binaryData"] = {f"{key}.json.gz": text for key in ("declared", "drift")} | {"x.json.gz": ending}
    with pytest.raises(StateInvalid, match=r"declared\.json\.gz`: is too large") as caught:
        read(body)
    assert "target.json`" not in str(caught.value), "a newer version's record is known by that"


@pytest.mark.parametrize("text", ["1969-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "3000-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"])
def test_a_time_so_far_away_that_no_one_can_reckon_with_it_is_refused(text: str) -> None:
    body = encode(blank(suspend=Suspend("x", until="2999-12-31T23:59:59Z")), NAMESPACE, TOOLING)
    assert read(body).suspend
    body["data"]["suspend.json"] = json.dumps({"by": "x", "until": text})
    with pytest.raises(StateInvalid, match="expected a time"):
        read(body)


def test_a_record_of_too_much_text_is_trimmed_before_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handler.state.store.INFLATED", 20_000)
    steps = tuple(StepRecord("apply", "all", f"ConfigMap/shop/{number}", "apply", message="x" * 1_000) for number in range(30))
    kept = fitted(blank(rollout=Progress(sha(), sha(), "2026-01-01T00:00:00Z", steps=steps)), NAMESPACE, TOOLING)[0].rollout
    assert kept
    assert len(kept.steps) == 30
