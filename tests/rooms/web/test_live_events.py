"""Pages get what changes from the event loop of a real server: no thread waits for them, and no viewer holds up another."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from handler.web.event_streams import MOST, OF_VISITOR
from tests.rooms.web.conftest import CONFIG, Serving, served
from tests.rooms.web.event_source import EventSource

ALL = "sees=shop-prod,slow"


def commit(number: int) -> str:
    return f"{number:040x}"


@contextlib.contextmanager
def live(tmp_path: Path, **environment: str) -> Iterator[Serving]:
    with served(tmp_path, CONFIG, "live_program", ANNEAL_ACCESS_LOG="1", **environment) as server:
        yield server


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A server for all tests of this file that leave nothing behind."""
    with live(tmp_path_factory.mktemp("page")) as server:
        yield server


def rolls(server: Serving, phase: str) -> None:
    """Let the run of `slow` come to a phase; it must be under way."""
    server.record.with_suffix(".new").write_text(phase)
    server.record.with_suffix(".new").rename(server.record.with_suffix(".phase"))


def test_a_viewer_gets_only_the_targets_that_he_sees(page: Serving) -> None:
    with EventSource(page, ALL) as all_of_them, EventSource(page, "sees=slow") as one, EventSource(page, "sees=") as none:
        assert (one.status, none.status) == (200, 200)
        assert page.push(after=commit(3)) == 202
        all_of_them.until_row("shop-prod", commit(3))
        assert page.push("no-target-follows-it") == 200
        one.until(lambda: "row-slow" in one.shown)
        assert page.push(after=commit(4)) == 202
        all_of_them.until_row("shop-prod", commit(4))
        for source in (one, none):
            source.sock.shutdown(1)
            source.to_end()
        assert (set(one.shown), set(none.shown)) == ({"row-slow"}, set())


@pytest.mark.parametrize("query", ["topic=shop-prod&sees=slow", "topic=unknown&sees=unknown", f"{ALL}&for=-1"])
def test_what_a_viewer_may_not_see_is_no_topic_and_nothing_outlives_a_sign_in(page: Serving, query: str) -> None:
    with EventSource(page, query) as source:
        assert source.status == 503
        assert "Retry-After: 5" in source.head.split("\r\n")


def test_a_target_is_shown_as_its_run_goes_on_and_a_later_viewer_gets_it_at_once(page: Serving) -> None:
    run = page.replay("slow")
    with EventSource(page, f"{ALL}&topic=slow") as source:
        for phase in ("rendering", "applying"):
            rolls(page, phase)
            source.until_live(phase=phase)
        assert (source.live["run"], source.live["waits"]) == (run, [{"what": "everything", "missing": ["missing since applying"]}])
        with EventSource(page, f"{ALL}&topic=slow") as later:
            later.until_live(phase="applying")
            assert [block["event"] for block in later.blocks if "event" in block] == ["replace", "replace"], "each fragment once"
            number = next(block["id"] for block in later.blocks if "id" in block)
        with EventSource(page, f"{ALL}&topic=slow", Last_Event_ID=number) as again:
            rolls(page, "end")
            again.until_live(ended="unchanged")
            assert not any("applying" in block.get("data", "") and '"ended\\": \\"\\"' in block["data"] for block in again.blocks)
    page.wait(lambda: any(line.get("run") == run for line in page.runs()))


def test_of_one_visitor_and_in_all_there_are_only_so_many_and_a_delivery_gets_in(page: Serving) -> None:
    with ExitStack() as stack:
        for number in range(MOST):
            source = stack.enter_context(EventSource(page, f"{ALL}&visitor=v{number // OF_VISITOR}"))
            assert source.status == 200, number
            if number in (OF_VISITOR - 1, MOST - 1):
                for visitor in ("v0", "another") if number == MOST - 1 else ("v0",):
                    with EventSource(page, f"{ALL}&visitor={visitor}") as one_more:
                        assert one_more.status == 503
        assert page.push(after=commit(5)) == 202
        source.until_row("shop-prod", commit(5))
        source.sock.close()

        def back() -> bool:
            with EventSource(page, f"{ALL}&visitor=another") as instead:
                return instead.status == 200

        page.wait(back)


def test_a_view_that_fails_gives_its_place_back(page: Serving) -> None:
    for _ in range(OF_VISITOR + 1):
        with EventSource(page, f"{ALL}&visitor=unlucky&fails=1") as source:
            assert source.status == 500
    with EventSource(page, f"{ALL}&visitor=unlucky") as source:
        assert source.status == 200
