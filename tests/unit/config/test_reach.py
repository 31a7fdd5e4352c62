"""What a configuration reaches: every kind of setting is judged, an edit of anything else changes no digest, one of it does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import pytest

from handler.config.load import load, matches
from handler.config.reach import FILES, HOSTS, INCLUDED, KINDS, PROGRAMS, STORED, VARIABLES, Reach, reach
from handler.config.settings import Settings
from handler.config.settings_shape import slots

pytestmark = pytest.mark.slow

HEAD = "apiVersion: anneal.dev/v1alpha1\nkind: Config\n"
ELSE = {
    "alias",
    "appId",
    "applySet",
    "body",
    "cel",
    "chartName",
    "chartVersion",
    "claim",
    "clientId",
    "count",
    "dataKey",
    "dependency",
    "duration",
    "durationOrNever",
    "fraction",
    "glob",
    "groupKind",
    "groupVersion",
    "guardedKind",
    "header",
    "json",
    "keyRegex",
    "kindName",
    "labelKey",
    "name",
    "namespace",
    "network",
    "nix",
    "number",
    "objectName",
    "path",
    "person",
    "pgpKey",
    "pointer",
    "promoter",
    "ref",
    "releaseName",
    "renderer",
    "resourceName",
    "rollout",
    "scope",
    "secretKey",
    "semver",
    "serviceAccount",
    "sha",
    "sha256",
    "source",
    "sshKey",
    "stage",
    "target",
    "treeFile",
    "username",
    "valuesFile",
    "whitelist",
}
"""Kinds that name nothing which is asked, read or run. Who adds a kind decides: here, or in `KINDS`."""
TARGET = """
- name: shop
  repository: {url: https://git.example.com/shop.git, auth: {basic: {username: u, password: {file: token}}}}
  cluster: {kubeconfig: {file: kubeconfig}}
  charts: [{url: oci://charts.example.com/a, auth: {username: u, password: {env: CHARTS}}, caFile: ca.pem}]
  namespaces: [shop]
"""
KUBECONFIG = """
clusters: [{name: a, cluster: {server: "https://api.example.com"}}]
users:
- name: a
  user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin, args: [-a, script.py]}, tokenFile: /etc/token}
contexts: [{name: a, context: {cluster: a, user: a}}]
current-context: a
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "anneal.yaml").write_text(HEAD + "include: [more/*.yaml]\ntargets:" + TARGET)
    (tmp_path / "more").mkdir()
    (tmp_path / "more/a.yaml").write_text("targets: []\n")
    for name, text in {"kubeconfig": KUBECONFIG, "plugin": "#!/bin/sh\n", "script.py": "1\n", "ca.pem": "ca\n", "token": "t\n"}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def reached(checkout: Path) -> Reach:
    included: list[str] = []

    def read(glob: str, file: str) -> list[tuple[str, str]]:
        found = matches(glob, file)
        included.extend(name for name, _ in found)
        return found

    return reach(load(checkout / "anneal.yaml", read), checkout, checkout, included)


def kinds(cls: type, seen: set[type]) -> Iterator[str]:
    for slot in slots(cls) if cls not in seen else ():
        seen.add(cls)
        yield slot.kind
        held: Any = slot.item or slot.type
        if is_dataclass(held):
            yield from kinds(held, seen)  # type: ignore[arg-type]  # it is a class


def test_each_kind_of_setting_names_something_or_is_known_to_name_nothing() -> None:
    found = {kind for kind in kinds(Settings, set()) if kind}
    assert found - {*KINDS} == ELSE
    assert {*KINDS} - found == set()


def test_all_that_is_named_is_listed(checkout: Path) -> None:
    named = reached(checkout).named
    assert named[HOSTS] == ["https://api.example.com", "https://git.example.com/shop.git", "oci://charts.example.com/a"]
    assert named[FILES] == ["/etc/token", *(str(checkout / each) for each in ("ca.pem", "kubeconfig", "token"))]
    assert (named[INCLUDED], named[VARIABLES]) == ([str(checkout / "more/a.yaml")], ["CHARTS"])
    assert named[PROGRAMS] == ["./plugin -a script.py"]


TEXT = "anneal.yaml"
SAME = {
    "a namespace": (TEXT, "[shop]", "[shop, other]"),
    "a path": (TEXT, "namespaces", "path: deploy\n  namespaces"),
    "a name": (TEXT, "name: shop", "name: store"),
    "a user": (TEXT, "username: u", "username: v"),
    "a target of the same repository": (TEXT, "namespaces: [shop]", "namespaces: [shop]" + TARGET.replace("name: shop", "name: b")),
    "what a secret is": ("token", "t", "u"),
    "a comment of an included file": ("more/a.yaml", "[]", "[] # none"),
}
OTHER = {
    "a host": (TEXT, "git.example.com", "evil.example.com"),
    "a port": (TEXT, "git.example.com", "git.example.com:8443"),
    "a file": (TEXT, "file: token", "file: /etc/shadow"),
    "a file for a variable": (TEXT, "file: token", "env: TOKEN"),
    "a context of a kubeconfig": (TEXT, "{file: kubeconfig}", "{file: kubeconfig}, context: admin"),
    "another list of kubeconfigs": (TEXT, "{file: kubeconfig}", "{file: 'kubeconfig:~/.kube/config'}"),
    "a Secret of the cluster": (TEXT, "{file: token}", "{kubernetesSecret: kube-system/a/b}"),
    "programs without walls": (TEXT, "namespaces", "sandbox: weak\n  namespaces"),
    "a program": (TEXT, "namespaces", "renderer: {type: helm}\n  namespaces"),
    "a directory for nix": (TEXT, "namespaces", "renderer: {type: nix, nixPath: {nixpkgs: /home}}\n  namespaces"),
    "a queue": (TEXT, "targets:", "queue: {sqs: {url: 'https://sqs.eu-central-1.amazonaws.com/1/a.fifo'}}\ntargets:"),
    "a Prometheus": (TEXT, "targets:", "prometheus: [{url: 'https://metrics.example.com'}]\ntargets:"),
    "a host of an included file": ("more/a.yaml", "targets: []", TARGET.replace("shop", "more")),
    "a program of a kubeconfig in the checkout": ("kubeconfig", "./plugin", "curl"),
    "what such a program is": ("plugin", "#!", "#!/bin/evil\n#!"),
    "what its argument holds": ("script.py", "1", "2"),
    "an authority in the checkout": ("ca.pem", "ca", "evil"),
}


@pytest.mark.parametrize(("file", "before", "after"), SAME.values(), ids=SAME)
def test_an_edit_of_anything_else_is_the_same_reach(checkout: Path, file: str, before: str, after: str) -> None:
    assert edited(checkout, file, before, after)


@pytest.mark.parametrize(("file", "before", "after"), OTHER.values(), ids=OTHER)
def test_an_edit_of_what_is_reached_is_another_reach(checkout: Path, file: str, before: str, after: str) -> None:
    assert not edited(checkout, file, before, after)


def edited(checkout: Path, file: str, before: str, after: str) -> bool:
    first, text = reached(checkout).digest, (checkout / file).read_text()
    assert before in text
    (checkout / file).write_text(text.replace(before, after, 1))
    return reached(checkout).digest == first


def test_it_counts_which_secret_goes_where(checkout: Path) -> None:
    first, text = reached(checkout), (checkout / TEXT).read_text()
    swapped = text.replace("{file: token}", "{}").replace("{env: CHARTS}", "{file: token}").replace("{}", "{env: CHARTS}")
    (checkout / TEXT).write_text(swapped)
    found = reached(checkout)
    assert (found.named == first.named, found.digest == first.digest) == (True, False)


def test_a_new_included_file_is_another_reach(checkout: Path) -> None:
    first = reached(checkout).digest
    (checkout / "more/b.yaml").write_text("targets: []\n")
    assert reached(checkout).digest != first


def test_a_file_is_named_by_where_its_links_lead(checkout: Path) -> None:
    first = reached(checkout).digest
    (checkout / "token").unlink()
    (checkout / "token").symlink_to("/etc/shadow")
    found = reached(checkout)
    assert ("/etc/shadow" in found.named[FILES], found.digest == first) == (True, False)


def test_a_secret_of_a_store_is_named_by_its_store(checkout: Path) -> None:
    text = (checkout / TEXT).read_text()
    (checkout / TEXT).write_text(text.replace("{file: token}", "{kubernetesSecret: kube-system/a/b}"))
    assert reached(checkout).named[STORED] == ["kube-system/a/b"]


@pytest.mark.parametrize("text", ["users: [", "a: &a [*a]", "a: 1\n---\nb: 2\n", '\xff: "\\0"', "x" * 10_000, 'a: "\\0"'])
def test_a_kubeconfig_that_cant_be_read_may_name_anything_and_stops_nothing(checkout: Path, text: str) -> None:
    (checkout / "kubeconfig").write_text(text, encoding="latin-1")
    named = reached(checkout).named
    assert str(checkout / "kubeconfig") in named[FILES]
    assert all("whatever" in each for each in named.get(PROGRAMS, ()))


def test_a_kubeconfig_outside_of_the_checkout_is_the_persons_own_and_isnt_read(
    checkout: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    own = tmp_path_factory.mktemp("home") / "config"
    own.write_text(KUBECONFIG)
    (checkout / "kubeconfig").unlink()
    (checkout / "kubeconfig").symlink_to(own)
    first = reached(checkout)
    own.write_text("other")
    assert (PROGRAMS in first.named, reached(checkout).digest) == (False, first.digest)
