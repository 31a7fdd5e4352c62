"""The last runs as bars: the newest at the right, each with its word."""

from __future__ import annotations

from handler.web.page.overview import HEIGHT, sparkline, tone_of


def test_runs_are_bars_with_words() -> None:
    drawn = sparkline([{"outcome": "failed", "seconds": 4000.0}, {"outcome": "applied", "seconds": 2.5}])
    assert [bar.tone for bar in drawn.bars] == ["good", "bad"]
    assert drawn.text == "last runs, newest first: failed in 1 h, applied in 2 s"
    assert [bar.x for bar in drawn.bars] == [0, 8]
    assert drawn.bars[1].height == HEIGHT, "what takes longer than the longest fills it"
    assert all(bar.y + bar.height == HEIGHT and bar.height >= 4 for bar in drawn.bars)


def test_bars_of_one_colour_are_one_path() -> None:
    drawn = sparkline([{"outcome": outcome, "seconds": 0.0} for outcome in ("applied", "failed", "applied")])
    assert drawn.paths == (("good", "M0 14h6v6h-6zM16 14h6v6h-6z"), ("bad", "M8 14h6v6h-6z"))


def test_no_run_is_no_bar() -> None:
    assert (sparkline([]).bars, sparkline([]).text, sparkline([]).width) == ((), "no run yet", 1)


def test_an_outcome_of_a_newer_version_is_quiet() -> None:
    assert (tone_of("held"), tone_of("waiting"), tone_of("something new")) == ("warn", "moving", "quiet")
