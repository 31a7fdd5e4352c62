"""Instances on the page: their template counts and lists them, each has a page and acts of its own, within the rights of globs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from flask.testing import FlaskClient

from handler.config.page_settings import Role, RoleBinding
from handler.config.secrets import resolve_all
from handler.config.settings import Settings
from handler.config.trigger_settings import ResourceTrigger, TriggerSettings, WatchedResource
from handler.model.names import Identity
from handler.state.record import RecordedInstance, RunStatus
from handler.web.app import create_app
from handler.web.status_api import WorkerLink
from handler.worker.worker import Worker
from tests.fakes.objects import FakeObjects
from tests.fakes.page_visits import PAGE_SECRETS, URL, page_settings
from tests.fakes.signed_webhooks import Kept
from tests.fakes.worker_parts import asking, parts_of, remember
from tests.unit.rows import each_row
from tests.unit.state.samples import blank, sha
from tests.unit.web.door_with_runs import never
from tests.unit.web.page.page_door import OWN, get

TRIGGER = TriggerSettings(ResourceTrigger("widget", (WatchedResource("widget", "example.com/v1", "Widget"),)))
MAIN = "/ui/targets/shop-prod.shop.main"


def client(role: Role = "operator", *globs: str) -> FlaskClient:
    """A browser of a visitor with one role; shop-prod is a template with three instances, the last of which has failed."""
    known, objects = page_settings(), FakeObjects()
    targets = tuple(replace(each, trigger=TRIGGER) if each.name == "shop-prod" else each for each in known.targets)
    assert known.page
    roles: Any = (RoleBinding(role, (), ("ada",), globs or ("*",)),)
    settings: Settings = replace(known, targets=targets, page=replace(known.page, roles=roles))
    for namespace, name in (("dev", "main"), ("shop", "main"), ("shop", "worst")):
        instance = RecordedInstance(Identity("example.com", "Widget", namespace, name), f"uid-{namespace}-{name}")
        state = replace(blank(commit=sha("b")), target=f"shop-prod.{namespace}.{name}", instance=instance)
        state = replace(state, repository=known.targets[0].repository.url, status=RunStatus("failed" if name == "worst" else "applied"))
        remember(objects, state)
    secrets = resolve_all(settings, PAGE_SECRETS, needs={"page", "tokens", "webhooks"})
    worker = Worker(settings, parts_of(never, settings, objects))
    app = create_app(settings, secrets, Kept(), lambda: True, worker=WorkerLink(asking(worker), lambda _run: None))
    browser = app.test_client()
    assert browser.post("/ui/login", data={"token": PAGE_SECRETS["ADA"]}, headers=OWN, base_url=URL).status_code == 303
    return browser


def test_the_overview_counts_a_template_s_instances() -> None:
    page = get(client(), "/").text
    row = page[page.index('id="row-shop-prod"') :].partition("</tr>")[0]
    assert "3 instances" in row
    assert "in trouble" in row
    assert 'data-word="degraded"' in row
    assert "row-shop-prod.shop.main" not in page


def test_a_template_s_page_lists_its_instances_the_worst_first() -> None:
    page = get(client(), "/ui/targets/shop-prod").text
    listed = [part.partition('"')[0] for part in page.split('id="row-')[1:]]
    assert listed[0] == "shop-prod.shop.worst"
    assert sorted(listed) == ["shop-prod.dev.main", "shop-prod.shop.main", "shop-prod.shop.worst"]
    assert "no record" not in page, "a template has no record of its own, and its instances ran"
    other = get(client(), "/ui/targets/shop-dev").text
    assert "Instances" not in other
    assert "It has no record." in other


def test_an_instance_has_a_page_with_acts_and_a_live_view_of_its_own() -> None:
    page = get(client(), MAIN)
    assert page.status_code == 200
    assert f"{MAIN}/replay" in page.text
    assert 'id="live"' in page.text
    assert "<h2>Instances</h2>" not in page.text
    assert get(client(), f"{MAIN}/history").status_code == 200


@each_row(
    ("globs", "path", "status"),
    [
        (("shop-prod",), MAIN, 200),
        (("shop-prod.shop.*",), MAIN, 200),
        (("shop-prod.shop.*",), "/ui/targets/shop-prod.dev.main", 404),
        (("shop-prod.shop.*",), "/ui/targets/shop-prod", 404),
        (("*",), "/ui/targets/shop-prod.shop.gone", 404),
        (("*",), "/ui/targets/shop-dev.shop.main", 404),
        (("*",), "/ui/targets/shop-prod.shop.<b>", 404),
    ],
)
def test_an_instance_s_page_is_for_those_whose_globs_cover_it(globs: tuple[str, ...], path: str, status: int) -> None:
    assert get(client("viewer", *globs), path).status_code == status


def test_a_viewer_of_an_instance_doesnt_act_on_it() -> None:
    assert get(client("viewer", "shop-prod.*"), f"{MAIN}/suspend").status_code == 403
    assert get(client("operator", "shop-prod.*"), f"{MAIN}/suspend").status_code == 200
