"""Templates: any record can be shown, and nothing that stands in one becomes markup or leads elsewhere."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from jinja2 import UndefinedError

from handler.state.record import Drift, Run, State, StepRecord
from handler.web.page.overview import Choice, link, overview, row_view, tone_of
from handler.web.page.rendering import STATIC, TYPES, asset, render, static
from handler.web.page.target_view import target_view
from tests.fakes.signed_webhooks import door_settings
from tests.unit.rows import each_row
from tests.unit.state.samples import API, NOON, full, sha, states
from tests.unit.web.page.records import NAME, facts_of, row_of

pytestmark = pytest.mark.slow

EVIL = """"><script>alert(1)</script><img src=x onerror=alert(1)>'{{7*7}}javascript:alert(1)"""
TARGET = door_settings().target(NAME)


class Markup(HTMLParser):
    """What a browser would make of a page: its elements with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def harmless(text: str) -> None:
    """Nothing runs, and links lead to this site or, by http or https, to git."""
    for tag, attributes in Markup(text).found:
        assert tag not in ("script", "iframe", "object", "embed", "base", "style")
        assert not [name for name in attributes if name.startswith("on") or name == "style"], attributes
        for name in ("href", "src", "action"):
            assert re.match(r"(/(?!/)|#|\?|https?://)|$", attributes.get(name) or ""), attributes


def live(state: State | None, picture: dict[str, Any] | None = None, **facts: Any) -> str:
    return render("live.html", target=TARGET, view=target_view({**facts_of(state), **facts}, picture), tone_of=tone_of)


def row(state: State | None, **more: Any) -> str:
    return render("row.html", view=row_view({**row_of(state), **more}))


def test_an_idle_page_differs_by_nothing_when_it_was_looked_at_again() -> None:
    """What differs is sent, and takes the place of what a person has selected there."""
    idle = replace(full(), rollout=None, attempt=None)
    assert live(idle, seen="2026-03-01T12:00:00Z") == live(idle, seen="2026-03-01T12:00:10Z")
    assert 'datetime="2026-03-01T12:00:00Z"' in live(idle, seen="2026-03-01T12:00:00Z", trouble={"code": "x", "message": "away"})


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture], deadline=None)
@given(states)
def test_any_record_is_shown(state: State) -> None:
    harmless(live(state) + row(state))


def evil() -> State:
    run = Run("r", "push", "applied", NOON, sha("e"), EVIL, EVIL, EVIL, {"created": 1}, 2.0, EVIL, "", (EVIL,))
    known = full()
    assert known.rollout
    assert known.held
    steps = (StepRecord(EVIL, EVIL, EVIL, EVIL, NOON, "", "", EVIL, share=25),)
    return replace(
        known,
        history=(run,),
        rollout=replace(known.rollout, steps=steps),
        held=replace(known.held, reasons=(EVIL,), changes=(("prune", EVIL, "u"),)),
        drift=(Drift(API, EVIL, EVIL, EVIL, EVIL),),
        status=replace(known.status, message=EVIL, unhealthy=(f"Pod/shop/x: {EVIL}",)),
        health=replace(known.health, worst=(EVIL,), notes=(EVIL,)),
    )


PICTURE = {
    "run": "r",
    "commit": sha("e"),
    "phase": EVIL,
    "since": 1.0,
    "waits": [{"what": EVIL, "missing": [EVIL]}],
    "written": [{"object": EVIL, "action": EVIL}],
    "total": 1,
    "started": 1.0,
    "stages": [{"count": 1, "done": 0, "objects": [{"object": EVIL, "action": EVIL, "done": False}], "started": 1.0, "finished": 0.0}],
    "ended": "",
}


@each_row("repository", ["javascript:alert(1)", EVIL, 'https://git.example.com/x"onclick=alert(1)', "data:text/html,x"])
def test_what_strangers_write_is_text(repository: str) -> None:
    for page in (live(evil(), PICTURE, repository=repository), row(evil(), repository=repository, cluster=EVIL, why=EVIL)):
        harmless(page)
        assert "&lt;script&gt;" in page
        assert "{{7*7}}" in page, "shown as it was written"


@pytest.mark.parametrize(("lasted", "shown"), [(125, "for 2 min"), (None, "")], ids=["known", "unknown"])
def test_a_wait_says_how_long_it_has_lasted(lasted: int | None, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_700_000_000.0
    monkeypatch.setattr(time, "time", lambda: now)
    page = live(full(), PICTURE | {"since": now - lasted if lasted else 0.0, "waits": [{"what": "Pod/shop/x", "missing": []}]})
    (said,) = re.findall(r"waits for Pod/shop/x(.*)</h3>", page)
    assert said == (f' <span class="by">{shown}</span>' if shown else "")


def test_a_name_that_a_template_doesnt_get_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        render("row.html")


def test_a_static_files_address_changes_with_its_content() -> None:
    for name in TYPES:
        assert re.fullmatch(rf"{STATIC}[0-9a-f]{{12}}/{re.escape(name)}", asset(name))
        assert static(name)


def test_the_script_is_small_and_the_only_one() -> None:
    assert static("page.js").count(b"\n") <= 150
    assert [name for name, kind in TYPES.items() if "javascript" in kind] == ["page.js"]
    assert b"eval(" not in static("page.js")
    assert b"innerHTML" in static("page.js"), "of what our own server has made, which is escaped"


@each_row(
    ("name", "shown"),
    [
        ("kubeconfig /var/lib/anneal/demo/controlplane/kubeconfig", "…/controlplane/kubeconfig"),
        ("kubeconfig /etc/kubeconfig", "kubeconfig /etc/kubeconfig"),
        ("kubeconfig secret shop/login, context prod", "kubeconfig secret shop/login, context prod"),
        ("in-cluster", "in-cluster"),
    ],
)
def test_a_long_path_of_a_cluster_shows_its_end(name: str, shown: str) -> None:
    page = row(None, cluster=name)
    assert f">{shown}</span>" in page
    assert f'title="{name}"' in page


def test_the_strip_has_a_part_for_each_standing_as_wide_as_its_count() -> None:
    asked = Choice()
    found = overview([row_of(None), row_of(None), {**row_of(full()), "phase": "failed"}], asked)
    frame = {"visitor": None, "csrf": "", "topic": "/", "streams": True}
    drawn = render("overview.html", **frame, asked=asked, overview=found, retired=(), orders=(), link=partial(link, asked))
    assert 'viewBox="0 0 3 1"' in drawn
    assert '<rect class="bad" id="bar-failed" x="0" width="1" height="1"/>' in drawn
    assert '<rect class="quiet" id="bar-new" x="1" width="2" height="1"/>' in drawn
    assert '<rect class="good" id="bar-healthy" x="3" width="0" height="1"/>' in drawn


def test_a_running_process_shows_the_templates_that_it_was_started_with(monkeypatch: pytest.MonkeyPatch) -> None:
    before = render("acts.html", target=TARGET, acts=())
    monkeypatch.setattr("jinja2.loaders.PackageLoader.get_source", lambda *_: ("another", None, lambda: False))
    monkeypatch.setattr("jinja2.environment.Template.is_up_to_date", False)
    assert render("acts.html", target=TARGET, acts=()) == before
