"""A long list in pieces: the same JSON as in one, and only what changed is made anew."""

from __future__ import annotations

import base64
import gzip
import json
import random
from dataclasses import replace
from typing import Any

import pytest

from handler.model.errors import StateInvalid
from handler.state import configmap, gzip_chunks
from handler.state.configmap import decode
from handler.state.decode_cache import DecodeCache
from handler.state.gzip_chunks import SIZE, gzipped
from handler.state.record import Progress, State, StepRecord
from handler.state.record_format import write_record
from handler.state.store import fitted
from tests.unit.state.samples import NAMESPACE, NOON, TOOLING, blank, sha

pytestmark = pytest.mark.slow


def progress(count: int, message: str = "") -> Progress:
    steps = (StepRecord("öne", f"step {number}", f"ConfigMap/shop/c{number}", "Canary", message=message) for number in range(count))
    return Progress(sha(), "d" * 64, NOON, steps=tuple(steps))


def changed(record: Progress, place: int, **fields: Any) -> Progress:
    steps = record.steps
    return replace(record, steps=(*steps[:place], replace(steps[place], **fields), *steps[place + 1 :]))


@pytest.mark.parametrize("count", [1, SIZE, SIZE + 1, 5 * SIZE - 1])
def test_chunks_are_one_gzip_stream_of_the_same_json(count: int) -> None:
    record = progress(count, message='a "quote", and 語')
    text, read, length = gzipped(record, "steps")
    plain = gzip.decompress(base64.b64decode(text, validate=True))
    assert json.loads(plain) == write_record(record)
    assert (read, length) == (record, len(plain))


def test_a_change_of_one_step_makes_its_gzip_chunk_anew_and_no_other() -> None:
    record = progress(10 * SIZE, message=sha(f"{random.randrange(16):x}"))
    before = gzip_chunks._chunk.cache_info().misses
    for place in (0, 3 * SIZE, 10 * SIZE - 1):
        record = gzipped(changed(record, place, finished=NOON), "steps")[1]
    assert gzip_chunks._chunk.cache_info().misses - before == 10 + 2


def test_a_rollout_step_survives_the_record_and_a_cut_one_stays_cut() -> None:
    record = changed(progress(2 * SIZE), 1, message="x" * 5000)
    read = gzipped(record, "steps")[1]
    assert read.steps[1].message == "x" * 3999 + "…"
    assert [mine is back for mine, back in zip(record.steps, read.steps, strict=True)].count(False) == 1
    assert gzipped(read, "steps")[1] == read


def test_a_step_that_could_not_be_read_again_is_refused() -> None:
    wrong = changed(progress(2 * SIZE), SIZE, outcome="Not A Word")
    with pytest.raises(ValueError, match="lower-case word"):
        gzipped(wrong, "steps")
    with pytest.raises(StateInvalid, match="lower-case word"):
        fitted(blank(rollout=wrong), NAMESPACE, TOOLING)


@pytest.mark.parametrize("count", [SIZE, 4 * SIZE, 40 * SIZE])
def test_a_record_with_a_long_rollout_is_read_without_the_decode_cache(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    state: State = blank(rollout=progress(count))
    for place in range(3):
        assert state.rollout
        state, body = fitted(replace(state, rollout=changed(state.rollout, place, started=NOON)), NAMESPACE, TOOLING)
    monkeypatch.setattr(configmap, "_REMEMBERED", DecodeCache())
    assert decode(body, NAMESPACE, "shop", TOOLING) == state
    assert state.rollout
    assert [step.started for step in state.rollout.steps].count(NOON) == 3


def test_a_rollout_longer_than_can_be_read_is_written_with_shorter_messages() -> None:
    long = progress(40_000, message=sha() * 8)
    kept = fitted(blank(rollout=replace(long, steps=(*long.steps, replace(long.steps[0], group="x" * 5)))), NAMESPACE, TOOLING)[0].rollout
    assert kept
    assert len(kept.steps) == 40_001
