"""Puts the page together, in the process that serves it; loaded only where one is configured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from flask import Flask

from handler.config.instance_target import configured_as
from handler.config.secrets import Accepting
from handler.config.settings import Settings
from handler.queues import Queue
from handler.web.page import site_pages, target_pages
from handler.web.page.access import PageAccess
from handler.web.page.overview import OVERVIEW
from handler.web.page.routes import add_page
from handler.web.page.views import Page
from handler.web.page.worker_answers import Answers
from handler.web.recent_deliveries import RecentDeliveries
from handler.web.status_api import WorkerLink

if TYPE_CHECKING:
    from handler.web.page.live_feed import LiveFeed


def add_configured(
    app: Flask,
    settings: Settings,
    secrets: Accepting,
    queue: Queue,
    worker: WorkerLink,
    recent: RecentDeliveries,
    failed: Callable[[], None],
    *,
    streams: bool,
) -> None:
    """Add the page that `settings.page` asks for. `failed`: counts wrong tokens; `streams`: changes come as events."""
    assert settings.page, "no page is configured"  # noqa: S101 - its caller asks first

    access = PageAccess(settings.page, secrets, failed)
    feed = _feed(settings, worker) if streams else None
    add_page(app, Page(settings, access, Answers(worker.ask), queue, recent, feed))


def _feed(settings: Settings, worker: WorkerLink) -> LiveFeed:
    """Make what sends changes to open pages; it stands on the server's own loop, which functions don't have."""
    from handler.web.page.live_feed import LiveFeed  # noqa: PLC0415 - see above

    def render(topic: str, data: Any) -> Mapping[str, str]:
        target = configured_as(settings, topic)
        return site_pages.rows(data) if topic == OVERVIEW or target is None else target_pages.fragments(target, data)

    return LiveFeed(worker.ask, render, [target.name for target in settings.targets])
