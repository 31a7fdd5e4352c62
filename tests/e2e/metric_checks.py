"""Shops whose checks ask a real Prometheus, and what their records say of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from handler.config.settings import PrometheusSettings
from infra.prometheushost import PrometheusHost
from tests.e2e.documents import Document
from tests.e2e.one_target import Shop
from tests.patience import until


def measured(shop: Shop, *hosts: PrometheusHost, **options: Any) -> Shop:
    """Let the shop's checks ask these."""
    shop.settings = replace(shop.settings, prometheus=tuple(PrometheusSettings(host.url) for host in hosts))
    shop.handler = shop.handler_at(shop.kubectl.kubeconfig, **options)
    return shop


def named(shop: Shop) -> str:
    """Return the name of a metric of the shop's own."""
    return f"bad_{shop.name.replace('-', '_')}"


def asks(query: str, comparison: str, **more: Any) -> Document:
    return {"prometheus": {"query": query, "is": comparison, "interval": "1s", **more}}


def messages(shop: Shop) -> dict[str, str]:
    """Return what the record says of each step so far."""
    state = shop.handler.store(shop.target).read().state
    return {each.step: each.message for each in state.rollout.steps} if state and state.rollout else {}


def says(shop: Shop, name: str, text: str) -> None:
    """Return when a step's line in the record has a text."""
    until(lambda: text in messages(shop).get(name, ""), lambda: str(messages(shop)))
