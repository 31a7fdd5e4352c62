"""The last runs as bars: the newest at the right, each with its word."""

from __future__ import annotations

from handler.web.page.sparkline import HEIGHT, sparkline, tone_of


def test_runs_are_bars_with_words() -> None:
    drawn = sparkline([{"outcome": "failed", "seconds": 4000.0}, {"outcome": "applied", "seconds": 2.5}])
    assert [(bar.tone, bar.word) for bar in drawn.bars] == [("good", "applied, 2 s"), ("bad", "failed, 1 h")]
    assert drawn.text == "last runs, newest first: failed, applied"
    assert [bar.x for bar in drawn.bars] == [0, 8]
    assert drawn.bars[1].height == HEIGHT, "what takes longer than the longest fills it"
    assert all(bar.y + bar.height == HEIGHT and bar.height >= 4 for bar in drawn.bars)


def test_no_run_is_no_bar() -> None:
    assert (sparkline([]).bars, sparkline([]).text, sparkline([]).width) == ((), "no run yet", 1)


def test_an_outcome_of_a_newer_version_is_quiet() -> None:
    assert (tone_of("held"), tone_of("waiting"), tone_of("something new")) == ("warn", "moving", "quiet")
