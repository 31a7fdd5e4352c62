"""The two pages of an act: what it would do, to be confirmed; and the same again, where that has changed since it was shown."""

from __future__ import annotations

import logging

from flask import Response, request

from handler.config.settings import Target
from handler.model.errors import AnnealError, BadPayload, Forbidden, ShownOtherwise
from handler.web.page.access import away
from handler.web.page.acts import Act, Confirmation, look
from handler.web.page.roles import Visitor
from handler.web.page.views import Page

_LOG = logging.getLogger("anneal.page")


def confirm(page: Page, visitor: Visitor, target: Target, act: Act) -> Response:
    """Show what an act would do. Raises Forbidden: the visitor is no operator of the target."""
    _require_operator(visitor, target)
    return _form(page, visitor, target, look(act, target.name, request.args, page.answers.ask))


def do(page: Page, visitor: Visitor, target: Target, act: Act) -> Response:
    """Do what was confirmed, or show what has changed since: 409. Raises Forbidden: no operator, or a form that isn't ours."""
    page.access.require_csrf(visitor, request)
    _require_operator(visitor, target)
    found = look(act, target.name, request.form, page.answers.ask)
    try:
        found.require(request.form)
    except ShownOtherwise as changed:
        return _form(page, visitor, target, found, changed)
    try:
        done = _done(page, visitor, found)
    except ShownOtherwise as changed:  # since that look
        return _form(page, visitor, target, look(act, target.name, request.form, page.answers.ask), changed)
    except BadPayload as refusal:  # what was typed is still there
        return _form(page, visitor, target, found, refusal)
    run = "" if act.question else f"&run={done}"
    _LOG.info("asked on the page", extra={"fields": {"target": target.name, "act": act.name, "actor": visitor.name, "seen": done}})
    return away(f"/ui/targets/{target.name}?asked={act.name}{run}")


def _done(page: Page, visitor: Visitor, found: Confirmation) -> str:
    if found.act.question:
        return str(page.answers.ask(found.act.question, name=found.target, **found.about(visitor.name))["done"])
    return page.queue.put(found.job(visitor.name))


def _form(page: Page, visitor: Visitor, target: Target, found: Confirmation, refusal: AnnealError | None = None) -> Response:
    status = getattr(refusal, "status", 200)
    return page.html(visitor, "confirm.html", status=status, target=target, act=found.act, found=found, refusal=refusal)


def _require_operator(visitor: Visitor, target: Target) -> None:
    if not visitor.operates(target.name):
        raise Forbidden.of(visitor.name, f"is no operator of {target.name}")
