"""`anneal retire`: what it refuses, shows and prints before it asks; no run is needed for any of that."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from handler.app.connections import Connections
from handler.cli import retire as module
from handler.cli import trust
from handler.cli.group import anneal
from handler.cli.output import Output
from handler.config.load import load
from handler.model.errors import AccessDenied
from handler.state.heartbeat import UNREAD
from tests.fakes.apiserver import FakeConnection
from tests.fakes.apiserver.connection import straight
from tests.fakes.engine import SHOP
from tests.unit.engine.renamed_targets import OLD, PROTECTED, Renamed, identity, mapped

pytestmark = pytest.mark.slow

SPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "jobs"}}
Retiring = Callable[..., Result]


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Renamed:
    """A target that was applied, with objects in two namespaces; every command line leads to its cluster."""
    made = Renamed()
    made.planted(mapped("one"), mapped("kept", annotations=PROTECTED), mapped("job", "jobs"), SPACE)
    connection = FakeConnection(made.server, straight)
    monkeypatch.setattr(Connections, "_connection", lambda _self, _target: connection)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ANNEAL_CONFIG", raising=False)
    return made


def retire(*flags: str) -> Result:
    return CliRunner().invoke(anneal, ["retire", "shop", *flags])


def said(done: Result) -> str:
    return " ".join(done.output.split())


def configured(*targets: dict[str, Any]) -> str:
    """Write a configuration into this directory; return its name."""
    base = {"repository": {"url": SHOP.url}, "namespaces": ["shop"]}
    body = {"apiVersion": "anneal.dev/v1alpha1", "kind": "Config", "targets": [{**base, **each} for each in targets]}
    Path("anneal.yaml").write_text(yaml.safe_dump(body), encoding="utf-8")
    assert trust.remember(Path("anneal.yaml"), load, os.environ)
    return "anneal.yaml"


def test_a_dry_run_shows_all_of_it_asks_nothing_and_changes_nothing(shop: Renamed) -> None:
    since = len(shop.server.store.log)
    done = retire("--prune", "--dry-run")
    assert done.exit_code == 0, done.output
    assert "2 of 4 live objects would be deleted" in done.output
    assert "2 of 4 live objects would stay, without our marks" in done.output
    found = json.loads(retire("--prune", "--kind", "Namespace", "--dry-run", "-o", "json").stdout)
    assert set(found["toDelete"]) == {"ConfigMap/shop/one", "ConfigMap/jobs/job", "Namespace/jobs"}
    assert (found["toLetGo"], found["target"], found["namespace"]) == (["ConfigMap/shop/kept"], "shop", "")
    assert len(shop.server.store.log) == since


def test_without_a_terminal_the_command_is_printed_as_it_was_typed(shop: Renamed) -> None:
    since = len(shop.server.store.log)
    where = ("--kubeconfig", "/etc/prod config", "--context", "prod")
    done = retire("--prune", "--kind", "Namespace", "--installation", "default", "--repository", SHOP.url, *where)
    assert done.exit_code != 0
    typed = f"retire shop --prune --kind Namespace --installation default --repository {SHOP.url} -y"
    assert f"anneal --kubeconfig '/etc/prod config' --context prod {typed}" in said(done)
    assert len(shop.server.store.log) == since


@pytest.mark.parametrize(
    "known", [(), ({"name": "store", "namespaces": ["elsewhere"]},)], ids=["no configuration", "its repository is configured"]
)
@pytest.mark.parametrize("way", ["--prune", "--keep"])
def test_without_a_name_of_its_own_an_installation_ends_only_what_names_its_repository(
    shop: Renamed, way: str, known: tuple[dict[str, Any], ...]
) -> None:
    configured(*known) if known else None
    since = len(shop.server.store.log)
    done = retire(way, "-y")
    assert (done.exit_code, len(shop.server.store.log)) == (1, since), done.output
    assert f"add --repository URL, as this shows it: anneal retire shop {way} --dry-run" in said(done)
    assert SHOP.url not in said(done)
    assert SHOP.url in said(retire(way, "--dry-run"))
    other = "https://git.example.com/acme/other.git"
    done = retire(way, "--repository", other, "-y")
    assert (done.exit_code, len(shop.server.store.log)) == (1, since), done.output
    assert f"is of {SHOP.url}, not of {other}" in said(done)
    done = retire(way, "--repository", SHOP.url, "-y")
    assert (done.exit_code, shop.has_record("shop")) == (0, (False, False)), done.output


@pytest.mark.parametrize(("typed", "code"), [(SHOP.url, 0), ("", 1), ("y", 1), ("https://git.example.com/acme/other.git", 1)])
def test_a_person_types_the_repository_where_no_installation_is_named(
    shop: Renamed, monkeypatch: pytest.MonkeyPatch, typed: str, code: int
) -> None:
    since = len(shop.server.store.log)
    monkeypatch.setattr(Output, "interactive", property(lambda _: True))
    monkeypatch.setattr(Output, "ask", lambda _self, question, _default: typed if "type its repository" in question else "")
    done = retire("--prune")
    assert (done.exit_code, shop.body(identity("one")) is None) == (code, not code), done.output
    assert code == 0 or len(shop.server.store.log) == since


def test_a_doubt_ends_nothing_and_prints_the_same_command(shop: Renamed) -> None:
    configured({"name": "store", "repository": {"url": "http://127.0.0.1:1/acme/store.git"}})
    since = len(shop.server.store.log)
    done = retire("--prune", "--kind", "Namespace", "--repository", SHOP.url, "-y")
    assert (done.exit_code, len(shop.server.store.log)) == (1, since), done.output
    assert "target store may declare ConfigMap/shop/" in said(done)
    assert f"nothing was changed: anneal retire shop --prune --kind Namespace --repository {SHOP.url} -y" in said(done)
    configured({"name": "store", "namespaces": ["elsewhere"], "repository": {"url": "http://127.0.0.1:1/acme/store.git"}})
    done = retire("--prune", "--repository", SHOP.url, "-y")
    assert (done.exit_code, shop.has_record("shop")) == (0, (False, False)), done.output


def test_of_a_server_that_cant_be_seen_nothing_is_taken(shop: Renamed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Connections, "pulse", lambda _self, _target: UNREAD)
    since = len(shop.server.store.log)
    done = retire("--keep", "--repository", SHOP.url, "-y")
    assert (done.exit_code, len(shop.server.store.log)) == (1, since), done.output
    assert "Lease/anneal-system/anneal-heartbeat.default may not be read" in said(done)


@pytest.mark.parametrize(
    ("target", "seen"),
    [
        ({"name": "shop"}, "take it out of anneal.yaml first"),
        ({"name": "store", "renamedFrom": "shop"}, "its next run takes over what it has"),
    ],
)
def test_a_target_that_is_configured_or_taken_over_is_refused(shop: Renamed, target: dict[str, Any], seen: str) -> None:
    since = len(shop.server.store.log)
    configured(target)
    done = retire("--keep", "-y")
    assert done.exit_code == 1, done.output
    assert seen in said(done)
    assert len(shop.server.store.log) == since


def test_an_exclusive_namespace_in_which_something_would_stay_is_named_first(shop: Renamed) -> None:
    configured({"name": "store", "exclusive": ["shop"], "orphanGrace": "2h"})
    done = retire("--keep", "--dry-run")
    assert done.exit_code == 0, done.output
    assert "target store has shop as `exclusive`" in said(done)
    assert "7200 s (`orphanGrace`)" in said(done)
    assert "exclusive" not in retire("--keep", "--dry-run", "--namespace", "jobs").output


def test_a_namespace_itself_stays_and_is_said_to(shop: Renamed) -> None:
    configured({"name": "shop", "path": "shop"})
    done = retire("--keep", "--namespace", "jobs", "--repository", SHOP.url, "-y")
    assert done.exit_code == 0, done.output
    assert "Namespace/jobs itself stays, for it isn't in itself: `kubectl delete Namespace/jobs` deletes it" in said(done)
    assert re.search(r"`kubectl label Namespace/jobs \S+- && kubectl annotate Namespace/jobs \S+-` lets go of it", said(done))
    assert shop.marked("shop") == {"one", "kept", "jobs"}
    assert "itself stays" not in retire("--keep", "--namespace", "other", "--dry-run").output


def test_where_records_may_not_be_listed_the_own_one_is_retired_and_that_is_said(shop: Renamed, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: Any) -> None:
        raise AccessDenied.of("configmaps", "403: cannot list")

    monkeypatch.setattr(module, "instances_of", denied)
    store, since = shop.handler(OLD).store(OLD), len(shop.server.store.log)
    before = store.read().state
    assert before
    store.update(lambda state: store.blank(state.cluster_uid))  # as a template's
    unsure = retire("--keep", "-y")
    assert (unsure.exit_code, len(shop.server.store.log)) == (1, since + 1), unsure.output
    assert "whether it is a template, and has instances still, can't be seen" in said(unsure)
    store.update(lambda _: before)
    done = retire("--keep", "--repository", SHOP.url, "-y")
    assert done.exit_code == 0, done.output
    assert "has instances still, can't be seen: 403: cannot list" in said(done)
    assert shop.has_record("shop") == (False, False)
