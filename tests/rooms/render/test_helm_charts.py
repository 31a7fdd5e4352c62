"""The charts that a chart needs: in the tree, in charts/, from elsewhere; archives that no honest packer makes."""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from handler.config.renderer_settings import Chart
from handler.model.errors import ManifestInvalid, OperatorError, Problem, SourceRefused
from handler.model.outside_inputs import ChartReference, NothingOutside
from handler.render import Sandbox
from tests.rooms.render.helm_releases import CHART, Elsewhere, by_helm, chart, digest, names, options, packed, rendered, sandbox

__all__ = ["sandbox"]

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Chart.Name }}-{{ .Values.port }}}\n"
DB: Mapping[str, str] = {
    "Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.2.3\n",
    "values.yaml": "port: 5432\n",
    "templates/db.yaml": CONFIG,
}
ARCHIVE = packed({f"db/{path}": data for path, data in DB.items()})


def needs(*dependencies: str, lock: str = "") -> dict[str, str | bytes]:
    """Return a chart that needs others."""
    lines = "".join(f"- {each}\n" for each in dependencies)
    return chart({"Chart.yaml": f"{CHART}dependencies:\n{lines}", **({"Chart.lock": lock} if lock else {})})


def under(folder: str, files: Mapping[str, str | bytes]) -> dict[str, str | bytes]:
    return {f"{folder}/{path}": data for path, data in files.items()}


# --- in the tree
def test_a_chart_beside_this_one_is_packed_into_it(sandbox: Sandbox, tmp_path: Path) -> None:
    files = {**needs('{name: db, version: 1.x, repository: "file://../libs/database"}'), **under("libs/database", DB)}
    found = rendered(sandbox, files)
    assert names(found) == ["ConfigMap/db-5432"]
    assert [each.place for each in found.manifests] == ["libs/database/templates/db.yaml:2"]
    assert dict(found.reads.paths).keys() == {"deploy", "libs/database", "//tool/helm"}
    wanted = by_helm(tmp_path, {**needs("{name: db, version: 1.x}"), **under("deploy/charts/db", DB)})
    assert [each.body() for each in found.manifests] == wanted


def test_a_chart_beside_it_may_need_another(sandbox: Sandbox) -> None:
    lib = {
        "Chart.yaml": "apiVersion: v2\nname: lib\nversion: 1.0.0\n",
        "templates/_p.tpl": '{{ define "port" }}{{ .Values.port }}{{ end }}',
    }
    db = {**DB, "Chart.yaml": f"{DB['Chart.yaml']}dependencies: [{{name: lib, version: 1.0.0, repository: 'file://../lib'}}]\n"}
    db["templates/db.yaml"] = CONFIG.replace("{{ .Values.port }}", '{{ include "port" . }}')
    files = {**needs("{name: db, version: 1.x, repository: 'file://../libs/db'}"), **under("libs/db", db), **under("libs/lib", lib)}
    found = rendered(sandbox, files)
    assert names(found) == ["ConfigMap/db-5432"]
    assert {"libs/db", "libs/lib"} < dict(found.reads.paths).keys()


def test_mistakes_in_a_chart_beside_it_have_its_place(sandbox: Sandbox) -> None:
    files = {
        **needs("{name: db, version: 1.x, alias: one, repository: 'file://../db'}"),
        **under("db", {**DB, "templates/x.yaml": "{{ .Values.a.b }}"}),
    }
    with pytest.raises(ManifestInvalid) as caught:
        rendered(sandbox, files)
    assert caught.value.problems[0].place == "db/templates/x.yaml:1"


BUILD = "run `helm dependency build deploy` and commit deploy/charts/"


@pytest.mark.parametrize(
    ("dependency", "files", "problem"),
    [
        ("{name: db, version: 1.x}", {}, Problem("dependency db", "isn't in charts/", "deploy/Chart.yaml:5", BUILD)),
        (
            "{name: db, version: 1.x, repository: '@stable'}",
            {},
            Problem(
                "dependency db",
                "isn't in charts/, and its repository @stable is a name that only `helm repo add` knows",
                "deploy/Chart.yaml:5",
                f"write the repository's URL, or {BUILD}",
            ),
        ),
        (
            "{name: db, version: 1.x, repository: 'file://../db'}",
            {},
            Problem("dependency db", "file://../db leads to db, which is no directory of the commit", "deploy/Chart.yaml:5", BUILD),
        ),
        (
            "{name: db, version: 1.x, repository: 'file://../../../etc'}",
            {},
            Problem("dependency db", "file://../../../etc leads out of the repository", "deploy/Chart.yaml:5", BUILD),
        ),
        (
            "{name: db, version: 1.x, repository: 'file:///etc'}",
            {},
            Problem("dependency db", "file:///etc leads out of the repository", "deploy/Chart.yaml:5", BUILD),
        ),
        (
            "{name: db, version: 1.x, repository: 'file://..'}",
            {},
            Problem("dependency db", "file://.. leads to a directory that the chart itself is in", "deploy/Chart.yaml:5"),
        ),
        (
            "{name: other, version: 1.x, repository: 'file://../db'}",
            under("db", DB),
            Problem(
                "dependency other", "file://../db is a chart of another name", "deploy/Chart.yaml:5", "write `name:` as its Chart.yaml does"
            ),
        ),
        ("{version: 1.x}", {}, Problem("dependency ?", "has no name", "deploy/Chart.yaml:5", "write `name:`")),
    ],
)
def test_a_chart_that_cant_be_had_is_named_with_its_line(
    dependency: str, files: dict[str, str | bytes], problem: Problem, sandbox: Sandbox
) -> None:
    with pytest.raises(SourceRefused) as caught:
        rendered(sandbox, {**needs(dependency), **files})
    assert caught.value.problems == (problem,)


def test_every_chart_that_is_missing_is_named(sandbox: Sandbox) -> None:
    with pytest.raises(SourceRefused) as caught:
        rendered(sandbox, needs("{name: a, version: 1.x}", "{name: b, version: 1.x}"))
    assert [each.place for each in caught.value.problems] == ["deploy/Chart.yaml:5", "deploy/Chart.yaml:6"]


def test_charts_that_need_each_other_are_refused(sandbox: Sandbox) -> None:
    one, other = ("{name: %s, version: 1.x, repository: 'file://../%s'}" % (name, name) for name in ("one", "two"))  # noqa: UP031 - braces
    files = {
        **needs(one),
        **under("one", {"Chart.yaml": f"apiVersion: v2\nname: one\nversion: 1.0.0\ndependencies: [{other}]\n"}),
        **under("two", {"Chart.yaml": f"apiVersion: v2\nname: two\nversion: 1.0.0\ndependencies: [{one}]\n"}),
    }
    with pytest.raises(SourceRefused, match="need each other more than"):
        rendered(sandbox, files)


# --- from elsewhere
def test_charts_from_elsewhere_are_fetched_and_read(sandbox: Sandbox) -> None:
    outside = Elsewhere(
        charts={"db": ARCHIVE, "cache": packed({f"cache/{path}": data.replace("db", "cache") for path, data in DB.items()})}
    )
    files = needs(
        "{name: db, version: 1.x, repository: 'https://charts.example.com/stable/'}",
        "{name: cache, version: ^1, repository: 'oci://r.example.com/c'}",
    )
    found = rendered(sandbox, files, outside=outside)
    assert sorted(names(found)) == ["ConfigMap/cache-5432", "ConfigMap/db-5432"]
    assert outside.asked == [
        ChartReference("https://charts.example.com/stable/", "db", "1.x", place="deploy/Chart.yaml:5"),
        ChartReference("oci://r.example.com/c/cache", "", "^1", place="deploy/Chart.yaml:6"),
    ]
    reads = {path: seen for path, seen in found.reads.paths if path.startswith("//chart/")}
    assert reads == {
        name: outside.ask(name) for name in ("//chart/https://charts.example.com/stable//db/1.x", "//chart/oci://r.example.com/c/cache//^1")
    }
    assert found.manifests[0].place.endswith("-1.2.3.tgz/templates/db.yaml:2")


@pytest.mark.parametrize("repository", ["https://charts.example.com", "file://../libs/db"])
def test_one_chart_may_be_needed_under_several_names(repository: str, sandbox: Sandbox) -> None:
    outside = Elsewhere(charts={"db": ARCHIVE})
    two = [f"{{name: db, version: 1.2.3, repository: '{repository}', alias: {alias}}}" for alias in ("one", "two")]
    files = {**needs(*two), **under("libs/db", DB), "deploy/values.yaml": "one: {port: 1}\ntwo: {port: 2}\n"}
    assert sorted(names(rendered(sandbox, files, outside=outside))) == ["ConfigMap/one-1", "ConfigMap/two-2"]
    assert len(outside.asked) == ("https" in repository)


def test_two_charts_of_the_tree_with_one_name_are_refused(sandbox: Sandbox) -> None:
    two = [f"{{name: db, version: 1.2.3, repository: 'file://../{place}', alias: a{place}}}" for place in ("x", "y")]
    with pytest.raises(SourceRefused, match=r"deploy/Chart.yaml:6: dependency db: file://../y and x can't both be charts/db"):
        rendered(sandbox, {**needs(*two), **under("x", DB), **under("y", DB)})


def test_the_locked_version_is_fetched(sandbox: Sandbox) -> None:
    lock = "dependencies:\n- {name: db, repository: 'https://charts.example.com', version: 1.2.3}\ndigest: sha256:00\n"
    outside = Elsewhere(charts={"db": ARCHIVE})
    rendered(
        sandbox, needs("{name: db, version: 1.x, repository: 'https://charts.example.com', condition: db.on}", lock=lock), outside=outside
    )
    assert [each.version for each in outside.asked] == ["1.2.3"]


def test_a_chart_in_the_tree_is_never_fetched(sandbox: Sandbox) -> None:
    files = {**needs("{name: db, version: 1.x, repository: 'https://charts.example.com'}"), "deploy/charts/db-1.2.3.tgz": ARCHIVE}
    assert names(rendered(sandbox, files, outside=NothingOutside())) == ["ConfigMap/db-5432"]


def test_what_may_not_be_fetched_is_refused_with_its_line(sandbox: Sandbox) -> None:
    with pytest.raises(OperatorError, match=r"deploy/Chart\.yaml:5: chart db"):
        rendered(sandbox, needs("{name: db, version: 1.x, repository: 'https://charts.example.com'}"), outside=NothingOutside())


def test_the_chart_of_a_target_may_be_from_elsewhere(sandbox: Sandbox) -> None:
    outside = Elsewhere(charts={"db": ARCHIVE})
    settings = options(chart=Chart("1.x", oci="oci://r.example.com/c/db", digest=digest(ARCHIVE)), values_files=("prod.yaml",))
    found = rendered(sandbox, {"deploy/prod.yaml": "port: 6000\n"}, settings, outside)
    assert names(found) == ["ConfigMap/db-6000"]
    assert found.manifests[0].place == "db-1.2.3.tgz/templates/db.yaml:2"
    assert outside.asked == [ChartReference("oci://r.example.com/c/db", "", "1.x", digest(ARCHIVE))]
    assert dict(found.reads.paths).keys() == {
        "deploy/anneal.lock",
        "deploy/prod.yaml",
        "//tool/helm",
        "//chart/oci://r.example.com/c/db//1.x",
    }
    assert found.keys.keys() == {"templates/db.yaml", "ConfigMap/db-6000"}


def test_mistakes_in_an_archive_have_its_place(sandbox: Sandbox) -> None:
    outside = Elsewhere(charts={"db": packed({"db/Chart.yaml": DB["Chart.yaml"], "db/templates/x.yaml": "\n{{ .Values.a.b }}"})})
    with pytest.raises(ManifestInvalid) as caught:
        rendered(sandbox, {"deploy/x": ""}, options(chart=Chart("1.x", repository="https://charts.example.com", name="db")), outside)
    assert caught.value.problems[0].place == "db-1.2.3.tgz/templates/x.yaml:2"


def test_an_archive_without_the_charts_that_it_needs_is_named(sandbox: Sandbox) -> None:
    data = packed(
        {"db/Chart.yaml": f"{DB['Chart.yaml']}dependencies: [{{name: lib, version: 1.x, repository: 'https://x.example.com'}}]\n"}
    )
    with pytest.raises(SourceRefused, match=r"db-1\.2\.3\.tgz/Chart\.yaml:4: dependency lib: isn't in the archive"):
        rendered(sandbox, {"deploy/x": ""}, options(chart=Chart("1.x", oci="oci://r.example.com/db")), Elsewhere(charts={"db": data}))


# --- hostile archives
def entry(name: str, kind: bytes, link: str = "") -> tarfile.TarInfo:
    found = tarfile.TarInfo(name)
    found.type, found.linkname = kind, link
    return found


HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "a link": (
        lambda: packed({"db/Chart.yaml": DB["Chart.yaml"], "db/a": entry("db/a", tarfile.SYMTYPE, "/etc/passwd")}),
        "db/a is a link",
    ),
    "a hard link": (lambda: packed({"db/a": entry("db/a", tarfile.LNKTYPE, "/etc/passwd")}), "db/a is a link"),
    "a device": (lambda: packed({"db/a": entry("db/a", tarfile.CHRTYPE)}), "db/a is neither a file nor a directory"),
    "a way out": (lambda: packed({"db/../../etc/x": "a"}), "db/../../etc/x leads out of the archive"),
    "a backslash": (lambda: packed({"db/..\\..\\x": "a"}), "leads out of the archive"),
    "an absolute path": (lambda: packed({"/etc/x": "a"}), "/etc/x leads out of the archive"),
    "a file beside the chart": (lambda: packed({"x": "a"}), "x lies outside the chart's directory"),
    "a large file": (lambda: packed({"db/a": b"\0" * (6 << 20)}), "db/a has 6,291,456 bytes"),
    "a large archive": (
        lambda: packed({f"db/{number}": b"\0" * (5 << 20) for number in range(21)}),
        "unpacks to more than 104,857,600 bytes",
    ),
    "many entries": (lambda: packed({f"db/{number}": "" for number in range(20_001)}), "is one of more than 20,000 entries"),
    "no archive": (lambda: b"hello", "can't be unpacked"),
    "half an archive": (lambda: ARCHIVE[: len(ARCHIVE) // 2], "can't be unpacked"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_archive_is_refused_by_name(kind: str, sandbox: Sandbox) -> None:
    made, message = HOSTILE[kind]
    data = made()
    with pytest.raises(ManifestInvalid) as caught:
        rendered(sandbox, chart({"charts/db-1.2.3.tgz": data}))
    assert message in str(caught.value)
    assert caught.value.problems[0].place == "deploy/charts/db-1.2.3.tgz"
    with pytest.raises(ManifestInvalid):
        rendered(sandbox, {"deploy/x": ""}, options(chart=Chart("1.x", oci="oci://r.example.com/db")), Elsewhere(charts={"db": data}))


def test_archives_in_archives_are_limited_together(sandbox: Sandbox) -> None:
    inner = packed({**{f"in/{number}": b"\0" * (5 << 20) for number in range(11)}, "in/Chart.yaml": CHART})
    outer = packed({"db/Chart.yaml": DB["Chart.yaml"], "db/charts/one.tgz": inner, "db/charts/two.tgz": inner})
    with pytest.raises(ManifestInvalid, match="with those beside it, to more than"):
        rendered(sandbox, chart({"charts/db-1.2.3.tgz": outer}))
