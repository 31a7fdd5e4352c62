"""`anneal vendor --lock`: which charts of a checkout are locked, and what is written."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from handler.cli.chart_lock import ToLock, to_lock, write_lock
from handler.config.git_settings import Repository
from handler.config.renderer_settings import Chart, ChartSource, RendererSettings
from handler.config.settings import Target
from handler.model.errors import ManifestInvalid, SourceRefused
from handler.model.outside_inputs import ChartReference, FetchedChart, KnownChart
from handler.render.charts.chart_readers import read_lock
from handler.render.sandbox import Sandbox
from handler.source.host_limits import HostLimits
from tests.fakes.sandbox import InProcess

SANDBOX = cast("Sandbox", InProcess())
URL = "https://charts.example.com/stable"
A, B = (f"sha256:{letter * 64}" for letter in "ab")
SOURCES = (ChartSource("oci://registry.example.com/charts"),)


def locks(data: bytes, path: str) -> tuple[KnownChart, ...]:
    return read_lock(SANDBOX, data, path)


def chart(directory: Path, dependencies: str = "", lock: str = "") -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "Chart.yaml").write_text(f"apiVersion: v2\nname: {directory.name}\nversion: 1.0.0\ndependencies: [{dependencies}]\n")
    if lock:
        (directory / "Chart.lock").write_text(f"dependencies: [{lock}]\n")


def asked(found: list[ToLock], root: Path) -> dict[str, list[str]]:
    return {str(each.directory.relative_to(root)): [f"{ref.name or ref.url} {ref.version}" for ref in each.references] for each in found}


def test_each_chart_that_needs_charts_is_found_with_what_it_needs(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    chart(tmp_path / "none")
    chart(tmp_path / "web", f"{{name: db, version: ^1, repository: {URL}}}, {{name: lib, version: 1.0.0, repository: 'file://../lib'}}")
    chart(tmp_path / "lib", f"{{name: deep, version: 2.x, repository: {URL}}}")
    chart(tmp_path / "web" / "charts" / "in", f"{{name: inner, version: 3.0.0, repository: {URL}}}")
    locked = f"{{name: db, version: 1.4.0, repository: {URL}}}"
    chart(tmp_path / "pinned", f"{{name: db, version: ^1, repository: {URL}}}", locked)
    chart(tmp_path / "had" / "charts" / "db")
    chart(tmp_path / "renamed" / "charts" / "db")
    (tmp_path / "renamed" / "charts" / "db").rename(tmp_path / "renamed" / "charts" / "database")
    chart(tmp_path / "renamed", f"{{name: db, version: ^1, repository: {URL}}}")
    chart(tmp_path / "had", f"{{name: db, version: ^1, repository: {URL}}}")
    (tmp_path / "link").symlink_to(tmp_path / "web")
    assert asked(to_lock(tmp_path, (), SANDBOX), tmp_path) == {
        "lib": ["deep 2.x"],
        "pinned": ["db 1.4.0"],
        "web": ["db ^1", "deep 2.x"],
    }


def test_a_checkout_below_a_directory_of_git_is_read_but_not_its_own(tmp_path: Path) -> None:
    work = tmp_path / ".git" / "modules" / "work"
    for place in (work, work / ".git" / "not"):
        chart(place / "web", f"{{name: db, version: ^1, repository: {URL}}}")
        (place / "kustomization.yaml").write_text(f"helmCharts: [{{name: cache, version: 1.0.0, repo: {URL}}}]\n")
    found = to_lock(work, (), SANDBOX)
    assert asked(found, work) == {".": ["cache 1.0.0"], "web": ["db ^1"]}


def test_charts_that_need_each_other_are_refused_as_by_a_render(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    chart(tmp_path / "a", "{name: b, version: 1.0.0, repository: 'file://../b'}")
    chart(tmp_path / "b", f"{{name: a, version: 1.0.0, repository: 'file://../a'}}, {{name: db, version: '1', repository: {URL}}}")
    with pytest.raises(SourceRefused, match="need each other more than"):
        to_lock(tmp_path, (), SANDBOX)


def test_what_cant_be_locked_is_refused_by_name_all_at_once(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    chart(tmp_path / "alias", f"{{name: db, version: ^1, repository: '@stable'}}, {{name: ok, version: ^1, repository: {URL}}}")
    chart(tmp_path / "bare", "{name: db, version: ^1}, {version: ^1}")
    chart(
        tmp_path / "far", "{name: db, version: ^1, repository: 'file://../gone'}, {name: out, version: ^1, repository: 'file://../../out'}"
    )
    chart(tmp_path / "fine", f"{{name: db, version: ^1, repository: {URL}}}")
    chart(tmp_path / "through", "{name: alias, version: 1.0.0, repository: 'file://../alias'}")
    chart(tmp_path / "unlike", "{name: other, version: 1.0.0, repository: 'file://../fine'}")
    with pytest.raises(SourceRefused) as caught:
        to_lock(tmp_path, (), SANDBOX)
    assert [f"{each.place} {each.subject}: {each.message}" for each in caught.value.problems] == [
        "alias/Chart.yaml:4 dependency db: isn't in charts/, and its repository @stable is a name that only `helm repo add` knows",
        "bare/Chart.yaml:4 dependency db: isn't in charts/",
        "bare/Chart.yaml:4 dependency ?: has no name",
        "far/Chart.yaml:4 dependency db: file://../gone leads to gone, which is no directory of the commit",
        "far/Chart.yaml:4 dependency out: file://../../out leads out of the repository",
        "unlike/Chart.yaml:4 dependency other: file://../fine is a chart of another name",
    ]
    assert "write the repository's URL" in caught.value.problems[0].fix


def test_what_isnt_asked_for_is_not_read(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    beside = "{name: lib, version: 1.0.0, repository: 'file://lib'}"
    chart(tmp_path, f"{{name: db, version: ^1, repository: {URL}}}, {{name: had, version: ^1, repository: {URL}}}, {beside}")
    chart(tmp_path / "lib", f"{{name: deep, version: ^1, repository: {URL}}}", f"{{name: deep, version: 1.2.3, repository: {URL}}}")
    chart(tmp_path / "charts" / "had")
    for place in (tmp_path, tmp_path / "lib"):
        (place / ".venv" / "bin").mkdir(parents=True)
        (place / ".venv" / "bin" / "python").symlink_to("/usr/bin/python3")
        with (place / "core").open("wb") as large:
            large.truncate(HostLimits().object + 1)
    assert asked(to_lock(tmp_path, (), SANDBOX), tmp_path) == {".": ["db ^1", "deep 1.2.3"], "lib": ["deep 1.2.3"]}


def test_links_in_charts_are_followed_within_the_checkout(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    chart(tmp_path / "web", "{name: lib, version: 1.0.0}, {name: whole, version: 1.0.0}")
    chart(tmp_path / ".libs" / "lib")
    chart(tmp_path / "libs" / "whole")
    (tmp_path / "web" / "charts").mkdir()
    (tmp_path / "web" / "charts" / "lib").symlink_to("../../.libs/lib")
    (tmp_path / "web" / "charts" / "whole").mkdir()
    (tmp_path / "web" / "charts" / "whole" / "Chart.yaml").symlink_to("../../../libs/whole/Chart.yaml")
    assert to_lock(tmp_path, (), SANDBOX) == []
    (tmp_path / "web" / "charts" / "lib").unlink()
    (tmp_path / "web" / "charts" / "lib").symlink_to("../../gone")
    with pytest.raises(SourceRefused, match="web/charts/lib: this symbolic link leads nowhere"):
        to_lock(tmp_path, (), SANDBOX)


@pytest.mark.parametrize("part", ["charts", "Chart.lock"])
def test_a_link_out_of_the_checkout_is_refused(part: str, tmp_path: Path) -> None:
    work = tmp_path / "work"
    chart(work / "web", f"{{name: db, version: ^1, repository: {URL}}}")
    (work / ".git").mkdir()
    chart(tmp_path / "out" / "charts" / "db")
    (tmp_path / "out" / "Chart.lock").write_text(f"dependencies: [{{name: db, version: 1.0.0, repository: {URL}}}]\n")
    (work / "web" / part).symlink_to(tmp_path / "out" / part)
    with pytest.raises(SourceRefused, match=rf"web/{part}: this symbolic link is absolute"):
        to_lock(work, (), SANDBOX)
    (work / "web" / part).unlink()
    (work / "web" / part).symlink_to(f"../../out/{part}")
    with pytest.raises(SourceRefused, match=rf"web/{part}: .*leads out of the repository"):
        to_lock(work, (), SANDBOX)


def test_without_git_the_checkout_is_the_directory_that_was_named(tmp_path: Path) -> None:
    chart(tmp_path / "web", "{name: lib, version: 1.0.0, repository: 'file://../lib'}")
    chart(tmp_path / "lib", f"{{name: deep, version: ^1, repository: {URL}}}")
    assert asked(to_lock(tmp_path, (), SANDBOX), tmp_path) == {"lib": ["deep ^1"], "web": ["deep ^1"]}


def test_charts_of_targets_are_found_by_their_path_in_the_checkout(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "deploy" / "shop").mkdir(parents=True)
    repository = Repository("https://git.example.com/shop.git")
    renderer = RendererSettings(type="helm", chart=Chart(version="^1", oci="oci://registry.example.com/charts/web"))
    inside = Target("shop", repository, ("shop",), path="deploy/shop", renderer=renderer, charts=SOURCES)
    outside = Target("other", repository, ("shop",), path="other", renderer=renderer, charts=SOURCES)
    (found,) = to_lock(tmp_path / "deploy", (inside, outside), SANDBOX)
    assert found == ToLock(tmp_path / "deploy" / "shop", (ChartReference("oci://registry.example.com/charts/web", "", "^1"),), SOURCES)


def test_a_target_lends_its_sources_to_the_chart_at_its_path(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    chart(tmp_path / "web", f"{{name: db, version: ^1, repository: {URL}}}")
    target = Target("shop", Repository("https://git.example.com/shop.git"), ("shop",), path="web", charts=SOURCES)
    (found,) = to_lock(tmp_path, (target,), SANDBOX)
    assert (found.sources, [each.name for each in found.references]) == (SOURCES, ["db"])


def test_a_lock_is_written_as_it_is_read_and_says_what_has_changed(tmp_path: Path) -> None:
    serves = {"db": ("1.2.0", A), "": ("2.0.0", A)}
    given: list[tuple[ChartSource, ...]] = []

    def fetch(reference: ChartReference, sources: tuple[ChartSource, ...]) -> FetchedChart:
        given.append(sources)
        return FetchedChart(reference, *serves[reference.name], b"")

    what = ToLock(tmp_path, (ChartReference(URL, "db", "^1"), ChartReference("oci://h/charts/web", "", "2.0.0")))
    lock = tmp_path / "anneal.lock"
    assert list(write_lock(what, fetch, locks)) == [f"{lock}: db 1.2.0 {A}", f"{lock}: web 2.0.0 {A}"]
    assert given == [(ChartSource(URL),), (ChartSource("oci://h/charts/web"),)]
    assert [replaced(each) for each in locks(lock.read_bytes(), str(lock))] == [
        KnownChart(URL, "db", "^1", "1.2.0", A),
        KnownChart("oci://h/charts/web", "", "2.0.0", "2.0.0", A),
    ]
    written = lock.read_text()
    assert list(write_lock(what, fetch, locks)) == [f"{lock}: db 1.2.0 as before", f"{lock}: web 2.0.0 as before"]
    assert lock.read_text() == written
    serves |= {"db": ("1.3.0", B), "": ("2.0.0", B)}
    assert list(write_lock(what, fetch, locks)) == [
        f"{lock}: db 1.2.0 -> 1.3.0 {B}",
        f"{lock}: web 2.0.0: ITS BYTES HAVE CHANGED, {A} -> {B}",
    ]


def replaced(chart: KnownChart) -> KnownChart:
    return KnownChart(chart.url, chart.name, chart.asked, chart.version, chart.digest)


def test_a_lock_that_cant_be_read_is_written_anew(tmp_path: Path) -> None:
    (tmp_path / "anneal.lock").write_text("<<<<<<< ours")
    what = ToLock(tmp_path, (ChartReference(URL, "db", "^1"),))
    assert len(list(write_lock(what, lambda reference, _: FetchedChart(reference, "1.0.0", A, b""), locks))) == 1
    assert locks((tmp_path / "anneal.lock").read_bytes(), "anneal.lock")


def test_a_chart_that_cant_be_read_is_named(tmp_path: Path) -> None:
    chart(tmp_path / "web", f"{{name: db, version: ^1, repository: {URL}}}")
    (tmp_path / "web" / "charts").mkdir()
    (tmp_path / "web" / "charts" / "db-1.0.0.tgz").write_bytes(b"none")
    with pytest.raises(ManifestInvalid, match=r"charts/db-1\.0\.0\.tgz"):
        to_lock(tmp_path, (), SANDBOX)


def test_charts_that_kustomizations_inflate_are_locked_beside_them(tmp_path: Path) -> None:
    def kustomization(place: Path, *charts: str) -> None:
        place.mkdir(parents=True)
        (place / "kustomization.yaml").write_text(f"helmCharts: [{', '.join(charts)}]\n")

    cache, own = f"{{name: cache, version: ~1.2, repo: {URL}}}", "{name: own}"
    kustomization(tmp_path / "base", cache, own, "{name: web, version: 1.0.0, repo: 'oci://registry.example.com/charts'}")
    kustomization(tmp_path / "had", cache)
    chart(tmp_path / "had" / "charts" / "cache-~1.2" / "cache")
    kustomization(tmp_path / "none", own)
    target = Target(
        "shop",
        Repository("https://git.example.com/shop.git"),
        ("shop",),
        renderer=RendererSettings("kustomize", helm_charts=True),
        charts=SOURCES,
    )
    [what] = to_lock(tmp_path, (target,), SANDBOX)
    assert asked([what], tmp_path) == {"base": ["cache ~1.2", "oci://registry.example.com/charts/web 1.0.0"]}
    assert what.sources == SOURCES


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    victim, inside = tmp_path / "victim", tmp_path / "checkout" / "web"
    inside.mkdir(parents=True)
    victim.write_text("mine")
    (inside / "anneal.lock").symlink_to(victim)
    what = ToLock(inside, (ChartReference(URL, "db", "1.0.0"),))
    with pytest.raises(SourceRefused, match=r"anneal.lock: is a symbolic link"):
        list(write_lock(what, lambda *_: FetchedChart(what.references[0], "1.0.0", A, b""), locks))
    assert victim.read_text() == "mine"
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "checkout" / ".git").mkdir()
    (tmp_path / "checkout" / "led").symlink_to(tmp_path / "elsewhere")
    renderer = RendererSettings("helm", chart=Chart(version="1.0.0", oci="oci://registry.example.com/charts/web"))
    target = Target("shop", Repository("https://git.example.com/shop.git"), ("shop",), path="led", renderer=renderer)
    assert to_lock(tmp_path / "checkout", (target,), SANDBOX) == []


def test_a_chart_that_a_kustomization_inflates_without_a_version_is_refused_as_by_a_render(tmp_path: Path) -> None:
    (tmp_path / "kustomization.yaml").write_text(f"helmCharts:\n- {{name: cache, repo: {URL}}}\n")
    with pytest.raises(SourceRefused, match=r"kustomization\.yaml:2: chart cache: comes from elsewhere and has no version; write version"):
        to_lock(tmp_path, (), SANDBOX)
    chart(tmp_path / "charts" / "cache")
    assert to_lock(tmp_path, (), SANDBOX) == []
