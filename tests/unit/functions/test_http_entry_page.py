"""The page behind the api function, in every form of HTTP event: no worker is beside it, and nothing streams."""

from __future__ import annotations

import base64
import re
import threading
from collections.abc import Callable
from dataclasses import replace
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import urlencode

import pytest

from handler.app.build import Handler
from handler.config.secrets import resolve_all
from handler.config.settings import Settings
from handler.feedback.emf import EmfLines
from handler.functions.gateway import SAFETY, served
from handler.functions.http_entry import TOKENS, behind
from handler.inspect.inspector import Inspector
from handler.model.event import Job
from handler.model.names import run_id
from handler.web.app import create_app
from tests.fakes import aws_events
from tests.fakes.aws_events import FORMS, Context, Json
from tests.fakes.engine import cluster, engine, state_of
from tests.fakes.git_host import GitHost
from tests.fakes.page_visits import PAGE_SECRETS, URL, the_page
from tests.fakes.signed_webhooks import SECRETS, Kept, door_secrets, door_settings
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow

SETTINGS = replace(door_settings(), page=the_page())
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: shop}\ndata: {a: '1'}\n"
TARGET = "/ui/targets/shop-prod"
HIDDEN = r'<input type="hidden" name="(\w+)" value="([^"]*)">'


class Browser:
    """Sends what a form of event says, and keeps cookies as a browser does."""

    def __init__(self, door: Callable[[Any, Any], Json], form: Callable[..., Json]) -> None:
        self._door, self._form, self.cookies = door, form, dict[str, str]()

    def get(self, path: str, seconds: float = 300.0, **headers: str) -> tuple[int, str]:
        return self._sent("GET", path, headers, b"", seconds)

    def post(self, path: str, **fields: str) -> tuple[int, str]:
        sent = {"Origin": URL, "Content-Type": "application/x-www-form-urlencoded"}
        return self._sent("POST", path, sent, urlencode(fields).encode(), 300.0)

    def sign_in(self, name: str = "ADA") -> tuple[int, str]:
        return self.post("/ui/login", token=PAGE_SECRETS[name], next="/ui/deliveries")

    def _sent(self, method: str, path: str, headers: dict[str, str], body: bytes, seconds: float) -> tuple[int, str]:
        if self.cookies:
            headers = {**headers, "Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}
        answer = self._door(self._form(method, path, headers, body, encoded=bool(body)), Context(seconds))
        one, many = answer.get("headers") or {}, answer.get("multiValueHeaders") or {}
        self.head = {name.lower(): value for name, value in {**one, **{key: values[-1] for key, values in many.items()}}.items()}
        for text in answer.get("cookies") or many.get("Set-Cookie") or [one[name] for name in one if name == "Set-Cookie"]:
            self.cookies |= {name: each.value for name, each in SimpleCookie(text).items()}
        text = answer["body"]
        return answer["statusCode"], base64.b64decode(text).decode() if answer["isBase64Encoded"] else text


class Deployed:
    """The api function of a target that was deployed once. `made`: how often it has made what looks at clusters."""

    def __init__(self, settings: Settings = SETTINGS) -> None:
        self.host, self.server, self.queue, self.made = GitHost(), cluster(), Kept(), 0
        self.handler: Handler = engine(self.server, self.host, settings)
        self.declare("1")
        self.handler.run(Job("shop-prod", "tick", run=run_id("shop-prod")))
        secrets = replace(door_secrets(), page_secrets=resolve_all(SETTINGS, {**SECRETS, **PAGE_SECRETS}).page_secrets)
        worker = behind(settings, self.handler.records, self._inspector if settings.page else None)
        lines = EmfLines(lambda _line: None)
        self.door = served(create_app(settings, secrets, self.queue, lambda: True, worker=worker, metrics=lines, routes=TOKENS))

    def declare(self, value: str) -> None:
        self.host.push(self.host.commit({"web.yaml": MAP.replace("1'", f"{value}'")}))

    def _inspector(self) -> Inspector:
        self.made += 1
        return Inspector(self.handler)


@pytest.fixture
def deployed() -> Deployed:
    return Deployed()


forms = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


@forms
def test_a_person_signs_in_looks_and_decides_in_every_form_of_event(form: Callable[..., Json], deployed: Deployed) -> None:
    browser = Browser(deployed.door, form)
    assert browser.get("/")[0] == 303
    assert browser.head["location"] == "/ui/login"
    assert "Sign in" in browser.get("/ui/login")[1]
    status, _ = browser.sign_in()
    assert (status, browser.head["location"]) == (303, "/ui/deliveries")
    assert browser.get("/ui/deliveries")[0] == 200
    status, html = browser.get("/")
    assert (status, 'id="row-shop-prod"' in html, "data-streams" in html) == (200, True, False)
    assert browser.head["content-security-policy"].startswith("default-src 'none'")
    deployed.declare("2")
    assert "data.a" in browser.get(f"{TARGET}/gap")[1]
    shown = browser.get(f"{TARGET}/replay")[1]
    fields = dict(re.findall(HIDDEN, shown))
    assert browser.post(f"{TARGET}/replay", **{**fields, "csrf": "another"})[0] == 403
    assert browser.post(f"{TARGET}/replay", **fields)[0] == 303
    assert deployed.queue.jobs == [Job("shop-prod", "replay", force=True, actor="ada")]
    browser.post("/ui/logout", csrf=fields["csrf"])
    assert browser.get("/")[0] == 303


@forms
def test_a_search_and_static_files_arrive_whole(form: Callable[..., Json], deployed: Deployed) -> None:
    browser = Browser(deployed.door, form)
    browser.sign_in()
    html = browser.get("/?q=shop-prod&sort=name")[1]
    assert "row-shop-prod" in html
    assert "row-infra" not in html
    files = {name: address for address, name in re.findall(r'"(/ui/static/\w+/(\w+\.\w+))"', html)}
    assert set(files) == {"page.css", "page.js", "icon.svg"}
    texts = {name: browser.get(address)[1] for name, address in files.items()}
    assert (texts["icon.svg"].startswith("<svg"), "color-scheme" in texts["page.css"], "EventSource" in texts["page.js"]) == (True,) * 3
    assert browser.head["cache-control"] == "public, max-age=31536000, immutable"


def test_each_question_of_the_page_is_answered_and_what_looks_is_made_once(deployed: Deployed) -> None:
    browser = Browser(deployed.door, aws_events.function_url)
    browser.sign_in()
    assert deployed.made == 0
    run = deployed.handler.brief_store(deployed.handler.target("shop-prod")).read().state
    assert run
    tabs = ("", "/gap", "/orphans", "/inventory", "/events", "/history", f"/history?run={run.history[0].id}")
    assert [browser.get(TARGET + tab)[0] for tab in tabs] == [200] * len(tabs)
    assert browser.get(f"{TARGET}/logs?object=ConfigMap/shop/web")[0] == 404, "has no logs"
    assert deployed.made == 1


def test_suspend_and_resume_write_the_record(deployed: Deployed) -> None:
    browser = Browser(deployed.door, aws_events.function_url)
    browser.sign_in()

    def done(act: str) -> Any:
        shown = browser.get(f"{TARGET}/{act}")[1]
        fields = dict(re.findall(HIDDEN, shown))
        assert browser.post(f"{TARGET}/{act}", **fields, reason="an incident", until="")[0] == 303
        return state_of(deployed.handler, "shop-prod").suspend

    paused = done("suspend")
    assert (paused.by, paused.reason) == ("ada", "an incident")
    assert done("resume") is None


def test_there_is_no_stream_and_the_page_asks_again(deployed: Deployed) -> None:
    browser = Browser(deployed.door, aws_events.function_url)
    browser.sign_in()
    assert browser.get("/ui/live?topic=/")[0] == 503
    assert browser.get("/ui/live?topic=shop-prod")[0] == 503


def test_a_look_that_takes_longer_than_the_function_is_given_up_in_time(deployed: Deployed, monkeypatch: pytest.MonkeyPatch) -> None:
    browser, held = Browser(deployed.door, aws_events.function_url), threading.Event()
    browser.sign_in()
    monkeypatch.setattr(deployed.handler, "look", lambda *_: held.wait(PATIENCE))
    try:
        status, html = browser.get(f"{TARGET}/gap", seconds=SAFETY + 5.0)
        assert status == 502
        assert re.search(r"hasn&#39;t ended within [0-5](\.\d+)? s", html)
    finally:
        held.set()


def test_cookies_that_came_in_pieces_are_read_whole(deployed: Deployed) -> None:
    browser = Browser(deployed.door, aws_events.rest)
    browser.sign_in()
    event = aws_events.rest("GET", "/", {})
    pieces = ["theme=dark", *(f"{name}={value}" for name, value in browser.cookies.items())]
    event["multiValueHeaders"]["Cookie"] = pieces
    assert deployed.door(event, Context())["statusCode"] == 200


@forms
@pytest.mark.parametrize("like", ["x_forwarded_groups", "x-forwarded_groups", "x-forwarded-group\u017f"])
def test_no_header_of_a_like_name_replaces_one_of_the_proxy(form: Callable[..., Json], like: str, deployed: Deployed) -> None:
    """A proxy replaces the names that it knows, and passes on what else a person sends."""
    proxied = {"X-Anneal-Proxy": PAGE_SECRETS["PROXY"], "X-Forwarded-Email": "bob@example.com", "X-Forwarded-Groups": "developers"}
    asked = [deployed.door(form("GET", path, {**proxied, like: "platform"}), Context()) for path in (TARGET, f"{TARGET}/suspend")]
    assert [each["statusCode"] for each in asked] == [200, 403]


@pytest.mark.parametrize("second", ["X-Forwarded-Groups", "x-forwarded-groups"])
@pytest.mark.parametrize("form", [aws_events.rest, aws_events.balancer_of_lists])
def test_groups_that_came_twice_give_no_role(form: Callable[..., Json], second: str, deployed: Deployed) -> None:
    """A proxy that adds its headers, instead of replacing those of a person."""
    event = form("GET", TARGET, {"X-Anneal-Proxy": PAGE_SECRETS["PROXY"], "X-Forwarded-Email": "bob@example.com"})
    event["multiValueHeaders"] |= {"X-Forwarded-Groups": ["developers"]}
    assert deployed.door(event, Context())["statusCode"] == 200
    event["multiValueHeaders"].setdefault(second, []).append("platform")
    assert deployed.door(event, Context())["statusCode"] == 303


def test_without_a_page_in_the_configuration_there_is_none() -> None:
    browser = Browser(Deployed(replace(SETTINGS, page=None)).door, aws_events.function_url)
    assert [browser.get(path)[0] for path in ("/", "/ui/login", TARGET)] == [404] * 3
    assert browser.get("/api/targets/shop-prod/gap", Authorization=f"Bearer {SECRETS['ALL']}")[0] == 503


def test_the_api_looks_at_no_cookie(deployed: Deployed) -> None:
    browser = Browser(deployed.door, aws_events.function_url)
    browser.sign_in()
    assert [browser.get(path)[0] for path in ("/api/targets", "/api/targets/shop-prod/gap", "/metrics")] == [401] * 3
    assert browser.post("/replay/shop-prod")[0] in (401, 415)
    assert deployed.queue.jobs == []
