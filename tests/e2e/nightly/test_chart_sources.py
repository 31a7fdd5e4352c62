"""Charts of a real registry and a real repository through whole runs: recorded at first use, known ever after, a range once a commit."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from handler.config.renderer_settings import Chart, ChartSource, RendererSettings
from handler.model.errors import ChartChanged
from handler.model.result import Outcome
from tests.e2e.conftest import Open
from tests.e2e.one_target import PATH, Shop, told
from tests.e2e.rendered_trees import get, push_files, unchanged
from tests.rooms.source.chart_servers import ChartHost, digest, directory, helm, packed, pushed, real_registry


@dataclass
class Charts:
    """Where a test's charts are: a registry, or a repository with its index."""

    place: Path
    registry: str = ""
    host: ChartHost | None = None

    @property
    def url(self) -> str:
        return self.host.address if self.host else f"http://{self.registry}/charts"

    def publish(self, version: str, value: str) -> str:
        """Publish a version, also over another of the same name; return the digest of its archive."""
        archive = packed(self.place, version, value=value)
        if self.host is None:
            pushed(self.registry, archive)
        else:
            (self.place / "served").mkdir(exist_ok=True)
            shutil.copy(archive, self.place / "served")
            assert helm("repo", "index", str(self.place / "served"), home=self.place).returncode == 0
        return digest(archive.read_bytes())

    def asked(self, version: str) -> Chart:
        return Chart(version, repository=self.url, name="web") if self.host else Chart(version, oci=self.oci)

    @property
    def oci(self) -> str:
        return f"oci://{self.registry}/charts/web"

    def settings(self, version: str) -> dict[str, Any]:
        """Return what of a target's settings takes a version."""
        return {"charts": (ChartSource(self.url),), "renderer": RendererSettings("helm", chart=self.asked(version))}


@pytest.fixture(params=["registry", "repository"])
def charts(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Charts]:
    if request.param == "registry":
        with real_registry() as address:
            yield Charts(tmp_path, address)
    else:
        with ChartHost(otherwise=directory(tmp_path / "served")) as host:
            yield Charts(tmp_path, host=host)


@pytest.fixture
def shop(open_shop: Open, renderers: Path) -> Shop:
    opened = open_shop()
    opened.create_namespace()
    opened.configure(namespace=opened.name)
    return opened


def value(shop: Shop) -> str:
    return str(get(shop, "configmap", "web")["data"]["value"])


def touch(shop: Shop, number: int, **more: str) -> str:
    """Push a commit that changes nothing of the chart."""
    return push_files(shop, {f"{PATH}/readme.md": f"words {number}\n", **more})


def test_what_a_version_was_at_first_it_must_be_ever_after(shop: Shop, charts: Charts) -> None:
    first = charts.publish("1.0.0", "a")
    shop.configure(**charts.settings("1.0.0"))
    sha = touch(shop, 1)
    shop.applied()
    assert [(each.version, each.digest, each.commit) for each in shop.state().charts] == [("1.0.0", first, sha)]
    other = charts.publish("1.0.0", "b")
    assert other != first
    shop.configure(**charts.settings("1.0.0"))  # a process that has fetched nothing yet
    child = shop.child().begin(shop.job("drift")).result()
    assert child
    assert (child.outcome, child.code) == (Outcome.FAILED, ChartChanged.code), told(child)
    touch(shop, 2)
    refused = shop.run()
    assert (refused.outcome, refused.code) == (Outcome.FAILED, ChartChanged.code), told(refused)
    assert first in refused.message
    assert other in refused.message
    assert value(shop) == "a"
    renderer = RendererSettings("helm", chart=Chart(**{**_fields(charts.asked("1.0.0")), "digest": other}))
    shop.configure(renderer=renderer)  # as the refusal says
    shop.applied()
    assert value(shop) == "b"


def _fields(chart: Chart) -> dict[str, str]:
    return {name: getattr(chart, name) for name in ("version", "oci", "repository", "name", "digest")}


def test_a_range_is_resolved_once_a_commit_and_a_lock_in_git_decides(shop: Shop, charts: Charts) -> None:
    locked = charts.publish("1.0.0", "a")
    shop.configure(**charts.settings("^1"))
    touch(shop, 1)
    shop.applied()
    charts.publish("1.1.0", "b")
    unchanged(shop.run("drift"))
    shop.configure(**charts.settings("^1"))
    unchanged(shop.run("drift"))
    child = shop.child().begin(shop.job("drift")).result()
    assert child
    unchanged(child)
    assert value(shop) == "a", "of this commit it is what it was"
    touch(shop, 2)
    shop.applied()
    assert value(shop) == "b"
    named = {"url": charts.url, "name": "web"} if charts.host else {"url": charts.oci}
    lock = {"charts": [{**named, "range": "^1", "version": "1.0.0", "digest": locked}]}
    touch(shop, 3, **{f"{PATH}/anneal.lock": json.dumps(lock)})
    shop.applied()
    assert value(shop) == "a", "a person has written which"
    charts.publish("1.2.0", "c")
    touch(shop, 4, **{f"{PATH}/anneal.lock": json.dumps(lock)})
    assert shop.run().outcome is Outcome.UNCHANGED
    assert value(shop) == "a"
