"""A real Gitea pushes, and shows on its commits how they fare: every end, once, also after kills and while it was down."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from infra.giteahost import GiteaHost
from tests.e2e.documents import Document, config_map, deployment
from tests.e2e.gitea_shop import GiteaShop
from tests.e2e.serve_process import SECRET, TOKEN
from tests.e2e.workload_status import fated, made_ready
from tests.in_process import ran
from tests.kubectl import Kubectl
from tests.patience import until

PAGE = {
    "url": "https://anneal.example.com",
    "key": {"env": "HOOK"},
    "tokens": [{"name": "ada", "secret": {"env": "OPS"}, "groups": ["all"]}],
    "roles": [{"role": "viewer", "groups": ["all"]}],
}
Open = Callable[..., GiteaShop]


@pytest.fixture
def open_gitea_shop(gitea: GiteaHost, kubectl: Kubectl, tmp_path: Path) -> Iterator[Open]:
    made: list[GiteaShop] = []

    def opened(**parts: Any) -> GiteaShop:
        shop = GiteaShop(gitea, kubectl, tmp_path, **parts)
        made.append(shop)
        return shop

    yield opened
    for shop in made:
        shop.close()


def hanging(shop: GiteaShop, target: str = "") -> Document:
    """Return a Deployment whose pod isn't ready until a test makes it so."""
    return fated(deployment(target or shop.name, "web"), "never-ready", replicas=1)


def test_a_push_becomes_a_success_and_a_mistake_a_failure(open_gitea_shop: Open) -> None:
    shop = open_gitea_shop()
    shop.target()
    shop.serve()
    good = shop.push(config_map(shop.name, "a"), config_map(shop.name, "b"))
    assert shop.ends(good, "success").startswith("2 created in ")
    bad = shop.push(config_map(shop.name, "a"), config_map("elsewhere", "b"))
    assert "namespace elsewhere is not in the target's whitelist" in shop.ends(bad, "failure")
    mended = shop.push(config_map(shop.name, "a"))
    assert shop.ends(mended, "success").startswith("1 pruned in ")
    assert [each[0] for each in shop.shown(bad)][-1] == "failure"
    until(lambda: shop.owes() == [])


def test_a_rollout_is_pending_until_it_stands(open_gitea_shop: Open) -> None:
    shop = open_gitea_shop(settings={"page": PAGE})
    shop.target(wait={"timeout": "10m"})
    shop.serve()
    commit = shop.push(hanging(shop))
    assert shop.ends(commit, "pending") == "being applied"
    made_ready(shop.kubectl, shop.name, "web")
    shop.ends(commit, "success")
    assert [each[0] for each in shop.shown(commit)] == ["pending", "success"]
    links = {each["target_url"] for each in shop.gitea.statuses(shop.repository, commit)}
    assert links == {f"https://anneal.example.com/ui/targets/{shop.name}"}


def test_a_newer_push_supersedes_a_rollout_and_is_never_a_success_of_it(open_gitea_shop: Open) -> None:
    shop = open_gitea_shop()
    shop.target(wait={"timeout": "10m"})
    shop.serve()
    first = shop.push(hanging(shop))
    shop.ends(first, "pending")
    second = shop.push(config_map(shop.name, "a"))
    assert shop.ends(first, "error") == f"superseded by {second[:12]}"
    shop.ends(second, "success")
    assert [each[0] for each in shop.shown(first)] == ["pending", "error"]


def test_a_push_that_no_run_aimed_at_is_superseded_and_an_invented_one_has_nothing(open_gitea_shop: Open) -> None:
    shop = open_gitea_shop()
    shop.target()
    shop.serve()
    shop.ends(shop.push(config_map(shop.name, "a")), "success")
    worker = shop.serving.pid("worker")
    os.kill(worker, signal.SIGSTOP)
    skipped = shop.push(config_map(shop.name, "a", {"key": "2"}))
    head = shop.push(config_map(shop.name, "a", {"key": "3"}))
    until(lambda: len(shop.serving.lines("delivery")) >= 3)
    os.kill(worker, signal.SIGCONT)
    shop.ends(head, "success")
    assert shop.ends(skipped, "error") == f"superseded by {head[:12]}"


def test_a_commit_is_shown_for_the_targets_that_it_changes_and_once_for_the_others(open_gitea_shop: Open) -> None:
    shop = open_gitea_shop(feedback={"statusFor": "all"})
    names = [shop.target(), *(shop.target(f"{shop.name}-{number}") for number in range(3))]
    shop.serve()
    for name in names[1:]:
        shop.declare(config_map(name, "a"), target=name)
    first = shop.push(config_map(names[0], "a"))
    contexts = {name: f"anneal/default/{name}" for name in names}
    until(lambda: all(shop.record(name).commit == first for name in names))
    commit = shop.push(config_map(names[1], "a", {"key": "2"}), target=names[1])
    shop.ends(commit, "success", contexts[names[1]])
    assert shop.ends(commit, "success", "anneal/default") == "targets that read nothing of what changed stay as they are"
    until(lambda: all(each.posted for name in names for each in shop.record(name).commit_statuses))
    assert len(shop.shown(commit, "anneal/default")) == 1
    assert all(shop.shown(commit, contexts[name]) == [] for name in (names[0], *names[2:]))


def test_an_end_that_a_killed_server_owes_is_shown_once_later(kubectl: Kubectl, tmp_path: Path) -> None:
    with GiteaHost() as gitea:
        shop = GiteaShop(gitea, kubectl, tmp_path, settings={"interval": "5s"})
        try:
            shop.target(wait={"timeout": "10m"})
            shop.serve()
            commit = shop.push(hanging(shop))
            shop.ends(commit, "pending")
            gitea.stop()
            made_ready(shop.kubectl, shop.name, "web")
            until(lambda: shop.record().commit == commit, shop.serving.log.read_text)
            until(lambda: shop.serving.lines("commit statuses wait"))
            shop.serving.kill_all()
            assert shop.owes() == [commit]
            assert f"doesn't show yet how 1 commit ended: {commit[:12]}" in said(shop, "status", shop.name, "--offline")
            gitea.start()
            assert [each[0] for each in shop.shown(commit)] == ["pending"]
            shop.serving.start().ready()
            shop.ends(commit, "success")
            until(lambda: shop.owes() == [])
            shop.serving.stop()
            assert [each[0] for each in shop.shown(commit)] == ["pending", "success"]
        finally:
            shop.close()


def test_a_command_posts_how_its_run_ended_before_it_returns(open_gitea_shop: Open) -> None:
    shop = open_gitea_shop()
    shop.target()
    shop.configure()
    commit = shop.push(config_map(shop.name, "a"))
    assert "the host's API answers; whether the token may write commit statuses" in said(shop, "check", shop.name)
    said(shop, "apply", shop.name, "--yes")
    assert [each[0] for each in shop.shown(commit)] == ["success"]
    assert "the host's API answers, and shows a status" not in said(shop, "check", shop.name)
    assert "its git host doesn't show yet" not in said(shop, "status", shop.name)


def said(shop: GiteaShop, *words: str) -> str:
    """Run a command of ours; return what it says."""
    ended = ran(["--config", str(shop.serving.config), *words], {**os.environ, "HOOK": SECRET, "OPS": TOKEN})
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr
