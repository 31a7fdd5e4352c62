"""What `anneal vendor --lock` writes is what a render of the same checkout then asks for; judged by the real helm."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from handler.cli.chart_lock import to_lock, write_lock
from handler.model.errors import SourceRefused
from handler.model.outside_inputs import ChartReference, FetchedChart, chart_identity
from handler.model.render import RenderRequest
from handler.render import RENDERERS, Sandbox
from handler.render.charts.chart_readers import read_lock
from handler.source.local_tree import open_local
from tests.rooms.render.helm_releases import CALLED, Elsewhere, digest, packed, sandbox

__all__ = ["sandbox"]

URL = "https://charts.example.com/stable"
FILES = {
    "web/Chart.yaml": f"""apiVersion: v2
name: web
version: 1.0.0
dependencies:
- {{name: db, version: ^1, repository: {URL}}}
- {{name: cache, version: ~1.2, repository: oci://registry.example.com/charts/}}
- {{name: there, version: 1.x, repository: {URL}}}
- {{name: unlike, version: 1.x, repository: {URL}}}
- {{name: lib, version: 1.0.0, repository: file://../led/lib}}
""",
    "web/charts/directory/Chart.yaml": "apiVersion: v2\nname: there\nversion: 1.0.0\n",
    "web/charts/unlike/Chart.yaml": f"""apiVersion: v2
name: other
version: 1.0.0
dependencies: [{{name: inner, version: 1.x, repository: {URL}}}]
""",
    "libs/lib/Chart.yaml": "apiVersion: v1\nname: lib\nversion: 1.0.0\n",
    "libs/lib/requirements.yaml": f"dependencies: [{{name: mq, version: 1.x, repository: {URL}}}]\n",
    "libs/lib/requirements.lock": f"dependencies: [{{name: mq, version: 1.2.3, repository: {URL}}}]\n",
}


def test_a_render_asks_for_what_is_locked_and_for_nothing_else(tmp_path: Path, sandbox: Sandbox) -> None:
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    (tmp_path / ".git").mkdir()
    (tmp_path / "led").symlink_to("libs")
    served = {
        name: packed({f"{name}/Chart.yaml": f"apiVersion: v2\nname: {name}\nversion: 1.2.3\n"}) for name in ("db", "cache", "unlike", "mq")
    }

    def fetch(reference: ChartReference, _: object) -> FetchedChart:
        data = served[reference.name or reference.url.rpartition("/")[2]]
        return FetchedChart(reference, "1.2.3", digest(data), data)

    (what,) = to_lock(tmp_path / "web", (), sandbox)
    assert len(list(write_lock(what, fetch, partial(read_lock, sandbox)))) == len(served)
    lock = tmp_path / "web/anneal.lock"
    written = {(*chart_identity(each.url, each.name), each.version, each.digest) for each in read_lock(sandbox, lock.read_bytes(), "")}

    outside = Elsewhere(charts=served)
    RENDERERS["helm"].render(open_local(tmp_path)[0], RenderRequest("web", called=CALLED, outside=outside), sandbox)
    assert written == {(*chart_identity(each.url, each.name), each.version, each.digest) for each in outside.asked}


def test_a_chart_outside_of_the_checkout_is_not_read(tmp_path: Path, sandbox: Sandbox) -> None:
    for path in ("out/lib", "work/web"):
        (tmp_path / path).mkdir(parents=True)
    (tmp_path / "work/.git").mkdir()
    need = "apiVersion: v2\nname: {}\nversion: 1.0.0\ndependencies: [{{name: {}, version: 1.x, repository: '{}'}}]\n"
    (tmp_path / "out/lib/Chart.yaml").write_text(need.format("lib", "db", URL))
    (tmp_path / "work/web/Chart.yaml").write_text(need.format("web", "lib", "file://../../out/lib"))
    with pytest.raises(SourceRefused) as caught:
        to_lock(tmp_path / "work", (), sandbox)
    (problem,) = caught.value.problems
    assert (problem.subject, problem.message) == ("dependency lib", "file://../../out/lib leads out of the repository")
