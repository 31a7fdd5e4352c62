"""Commits of a target that goes back: one that gets healthy, one that never does."""

from __future__ import annotations

from tests.e2e.documents import Document, config_map, deployment, pods
from tests.e2e.one_target import Shop


def good(shop: Shop) -> list[Document]:
    return [deployment(shop.name, "web", "shop:1", 1), config_map(shop.name, "one")]


def hanging(shop: Shop) -> list[Document]:
    """A release whose pods run nowhere, until a node is called for it; it changes, adds and drops something besides."""
    stuck = deployment(shop.name, "web", "shop:2", 1)
    stuck["spec"]["template"] = pods({"app": "web"}, "shop:2")
    stuck["spec"]["template"]["spec"]["nodeSelector"] = {f"anneal.dev/{shop.name}": "here"}
    return [stuck, config_map(shop.name, "two")]


def deployed(shop: Shop) -> str:
    """Deploy what works; return its commit."""
    shop.create_namespace()
    sha = shop.push(*good(shop))
    shop.applied()
    return sha
