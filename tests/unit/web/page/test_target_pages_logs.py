"""From one log the others of the same pods are reached."""

from __future__ import annotations

from typing import Any

from handler.web.page.target_pages import LogLink, container_links, log_query, pod_links

LOG: dict[str, Any] = {"object": "Deployment/shop/web", "pod": "web-1", "container": "app", "previous": True, "pods": [], "containers": []}


def test_each_log_of_a_pod_has_a_link_that_names_the_pod() -> None:
    containers = [{"name": "proxy", "previous": False}, {"name": "app", "previous": True}]
    assert container_links(LOG | {"containers": containers}) == [
        LogLink("proxy", "object=Pod%2Fshop%2Fweb-1&container=proxy", shown=False),
        LogLink("app", "object=Pod%2Fshop%2Fweb-1&container=app", shown=False),
        LogLink("app, before its last restart", "object=Pod%2Fshop%2Fweb-1&container=app&previous=1", shown=True),
    ]
    assert container_links(LOG | {"containers": containers[:1]}) == [], "there is no other"
    assert container_links(LOG) == []


def test_each_pod_of_a_workload_has_a_link() -> None:
    found = pod_links(LOG | {"pods": ["Pod/shop/web-1", "Pod/shop/web-2"]})
    assert [(each.text, each.shown) for each in found] == [("web-1", True), ("web-2", False)]
    assert found[1].query == log_query("Pod/shop/web-2") == "object=Pod%2Fshop%2Fweb-2"
