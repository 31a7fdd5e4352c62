"""`anneal vendor` against a real git host and a real file server: what it fetches, writes and rewrites, and what it refuses."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from handler.cli.output import Output
from handler.cli.session import Session
from handler.cli.vendor import vendor
from handler.model.render import RenderRequest
from handler.render import RENDERERS
from handler.source.local_tree import open_local
from infra.githost import Host, Work
from tests.rooms.render.kustomize_trees import config, public_tools


@pytest.fixture
def host() -> Iterator[Host]:
    with Host() as host:
        yield host


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "deploy").mkdir()
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], directory: str = "deploy", config: str | None = None) -> tuple[int, dict[str, Any]]:
    with Session(Output(as_json=True), {"GIT_TOKEN": "hunter2"}, config) as session:
        code = vendor(session, Path(directory))
    return code, json.loads(capsys.readouterr().out)


def platform(host: Host) -> tuple[str, str]:
    """A repository of bases, tagged v1: `web` builds on `common`; beside them lies a file that no kustomization names."""
    work = Work.of(host, "acme/platform")
    work.write("web/kustomization.yaml", "resources: [web.yaml, ../common]\n").write("web/web.yaml", config("web"))
    work.write("common/kustomization.yaml", "resources: [c.yaml]\n").write("common/c.yaml", config("common")).write("readme.md", "hello\n")
    sha = work.commit("Bases")
    work.git("tag", "v1")
    work.git("push", "-q", "origin", "main", "v1")
    return host.url_of("acme/platform"), sha


def test_a_remote_base_is_written_and_the_entry_rewritten_with_its_comments_kept(
    host: Host, checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url, sha = platform(host)
    file = checkout / "deploy/kustomization.yaml"
    text = f"# ours\nresources:\n  - a.yaml # stays\n  - {url}//web?ref=v1 # the platform's\nnamePrefix: x-\n"
    file.write_text(text)
    (checkout / "deploy/a.yaml").write_text(config("a"))
    code, told = run(capsys)
    (one,) = told["vendored"]
    assert (code, told["problems"], one["origin"]) == (0, [], f"commit {sha}")
    name = url.removeprefix("http://").partition("/")[0].partition(":")[0]
    place = f"vendor/{name}/{url.partition('//')[2].partition('/')[2].removesuffix('.git')}@v1/web"
    line = f"  - {place} # the platform's # {url}//web?ref=v1 is commit {sha}"
    assert file.read_text() == text.replace(f"  - {url}//web?ref=v1 # the platform's", line)
    written = sorted(path.relative_to(checkout / "deploy").as_posix() for path in (checkout / "deploy/vendor").rglob("*") if path.is_file())
    top = place.removesuffix("/web")
    assert written == [f"{top}/{path}" for path in ("common/c.yaml", "common/kustomization.yaml", "web/kustomization.yaml", "web/web.yaml")]
    assert run(capsys)[1] == {"vendored": [], "problems": []}
    with public_tools(), Session(Output(), {}) as session:
        tree, _ = open_local(checkout)
        made = RENDERERS["auto"].render(tree, RenderRequest("deploy", weak=True), session.sandbox)
    assert sorted(each.identity.name for each in made.manifests) == ["x-a", "x-common", "x-web"]


def test_remote_bases_of_remote_bases_are_vendored_too(host: Host, checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url, _ = platform(host)
    work = Work.of(host, "acme/shop")
    work.write("kustomization.yaml", f"bases: ['{url}//common']\n")
    work.commit("Shop")
    work.push()
    (checkout / "deploy/kustomization.yaml").write_text(f"resources: [{host.url_of('acme/shop')}]\n")
    code, told = run(capsys)
    assert (code, len(told["vendored"])) == (0, 2)
    assert not any(
        "://" in line.partition("#")[0] for path in checkout.rglob("kustomization.yaml") for line in path.read_text().splitlines()
    )
    assert (checkout / told["vendored"][1]["directory"] / "c.yaml").is_file()


@contextmanager
def served(files: dict[str, tuple[int, bytes, str]]) -> Iterator[str]:
    """Serve status, content and Location by path."""

    class Serving(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, data, location = files.get(self.path, (404, b"", ""))
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            if location:
                self.send_header("Location", location)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Serving) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_a_single_file_becomes_a_directory_that_lists_it(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with served({"/r/crds.yaml": (302, b"", "/s/real.yaml"), "/s/real.yaml": (200, config("crd").encode(), "")}) as url:
        (checkout / "deploy/kustomization.yaml").write_text(f"resources:\n- {url}/r/crds.yaml\n")
        code, told = run(capsys)
    assert (code, told["problems"]) == (0, [])
    directory = checkout / told["vendored"][0]["directory"]
    assert sorted(path.name for path in directory.iterdir()) == ["crds.yaml", "kustomization.yaml"]
    assert (directory / "crds.yaml").read_text() == config("crd")
    with public_tools(), Session(Output(), {}) as session:
        made = RENDERERS["kustomize"].render(open_local(checkout)[0], RenderRequest("deploy", weak=True), session.sandbox)
    assert [each.identity.name for each in made.manifests] == ["crd"]


def test_what_cant_be_had_is_told_with_its_line_and_the_rest_is_done(
    host: Host, checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url, _ = platform(host)
    file = checkout / "deploy/kustomization.yaml"
    file.write_text(f"resources:\n- {url}//web?ref=gone\n- {url}//nowhere\n- file:///srv/x//y\n- {url}//common\n")
    code, told = run(capsys)
    assert code == 1
    assert [each["place"] for each in told["problems"]] == [f"deploy/kustomization.yaml:{line}" for line in (2, 3, 4)]
    assert told["problems"][0]["message"].partition(" (")[0] == "neither a tag nor a branch of the host"
    assert len(told["vendored"]) == 1
    assert file.read_text().splitlines()[1] == f"- {url}//web?ref=gone"


def test_a_base_with_a_link_out_of_its_repository_is_refused(host: Host, checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    work = Work.of(host, "acme/evil")
    work.write("kustomization.yaml", "resources: [a.yaml]\n").link("a.yaml", "/etc/passwd")
    work.commit("Evil")
    work.push()
    (checkout / "deploy/kustomization.yaml").write_text(f"resources: [{host.url_of('acme/evil')}]\n")
    code, told = run(capsys)
    assert (code, told["vendored"]) == (1, [])
    assert "symbolic link" in told["problems"][0]["message"]
    assert not (checkout / "deploy/vendor").exists()


def test_nothing_is_written_through_a_link_of_the_checkout(host: Host, checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url, _ = platform(host)
    (checkout / "outside").mkdir()
    (checkout / "deploy/vendor").symlink_to(checkout / "outside")
    (checkout / "deploy/kustomization.yaml").write_text(f"resources: ['{url}//web']\n")
    code, told = run(capsys)
    assert (code, list((checkout / "outside").iterdir())) == (1, [])
    assert "symbolic link" in told["problems"][0]["message"]


def test_a_private_host_is_signed_in_to_as_the_configuration_says(
    host: Host, checkout: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, _ = platform(host)
    host.accounts["me"] = "hunter2"
    (checkout / "deploy/kustomization.yaml").write_text(f"resources: ['{url}//web']\n")
    code, told = run(capsys)
    assert (code, "401" in told["problems"][0]["message"]) == (1, True)
    written = checkout / "anneal.yaml"
    written.write_text(
        f"apiVersion: anneal.dev/v1alpha1\nkind: Config\ntargets:\n- name: shop\n  repository: {{url: {host.url_of('acme/other')}, "
        "auth: {basic: {username: me, password: {env: GIT_TOKEN}}}}\n"
        "  path: deploy\n  namespaces: [shop]\n"
    )
    monkeypatch.setenv("GIT_TOKEN", "hunter2")
    code, told = run(capsys, config=str(written))
    assert (code, told["problems"]) == (0, [])


@pytest.mark.parametrize("text", ["{\n", "resources: [a.yaml]\n", ""])
def test_a_checkout_that_names_nothing_remote_is_left_as_it_is(checkout: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    (checkout / "deploy/kustomization.yaml").write_text(text)
    assert run(capsys) == (0, {"vendored": [], "problems": []})
    assert (checkout / "deploy/kustomization.yaml").read_text() == text


def test_a_problem_is_written_as_by_every_command(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (checkout / "deploy/kustomization.yaml").write_text("resources: ['file:///srv/x//y']\n")
    with Session(Output(), {}) as session:
        code = vendor(session, Path("deploy"))
    out, err = capsys.readouterr()
    assert (code, out) == (1, "")
    said = "deploy/kustomization.yaml:1: file:///srv/x: is a path of this machine\n    copy it into the repository by hand\n"
    assert err.startswith(said)
