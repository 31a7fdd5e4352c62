"""A real Gitea as the counterpart of tests: what is pushed to it is fetched, what it sends is proven and read."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from handler.model.errors import AccessDenied
from handler.triggers import WEBHOOKS
from infra.giteahost import Account, GiteaHost
from infra.gitwork import Work
from tests.fakes.host_webhooks import KEYS, SAMPLES, Sample, accepted
from tests.rooms.source.gitea_events import PullRequests
from tests.rooms.source.open_repository import Secret, following, opened
from tests.webhook_inbox import Delivery, Inbox

MAIN = "refs/heads/main"
RECORDED = {sample.name: sample for sample in SAMPLES if sample.provider == "gitea" and sample.headers}


@pytest.fixture
def ada(gitea: GiteaHost) -> Account:
    return gitea.user(f"ada-{secrets.token_hex(4)}")


@pytest.fixture
def bob(gitea: GiteaHost) -> Account:
    return gitea.user(f"bob-{secrets.token_hex(4)}")


@pytest.fixture
def shop(gitea: GiteaHost, ada: Account) -> str:
    return gitea.repository(ada.name, "shop", private=True)


@pytest.fixture
def work(gitea: GiteaHost, ada: Account, shop: str, tmp_path: Path) -> Work:
    return gitea.work(shop, ada, tmp_path / "work")


def proposed(gitea: GiteaHost, shop: str, account: Account, work: Work) -> tuple[int, str]:
    """Push a branch and open a pull request of it; return its number and commit."""
    work.git("checkout", "-q", "-b", "idea")
    work.write("deploy/web.yaml", "kind: Pod\n")
    sha = work.commit("An idea")
    work.push(ref="HEAD:refs/heads/idea")
    return gitea.open_pull_request(shop, account, f"{account.name}:idea"), sha


def test_what_is_pushed_is_fetched_with_a_token(gitea: GiteaHost, ada: Account, shop: str, work: Work) -> None:
    work.write("deploy/web.yaml", "kind: ConfigMap\n")
    sha = work.commit("Add the web")
    work.push()
    token = gitea.token(ada, "read:repository")
    with opened(gitea.clone_url(shop), secret=Secret(token)) as git:
        assert git.head(following(MAIN)).commit == sha
        tree = git.fetch(sha, "deploy")
        entries = list(tree.walk("deploy"))
        assert tree.blobs(entry.oid for entry in entries) == {entries[0].oid: b"kind: ConfigMap\n"}
        assert git.reaches(sha, work.git("rev-parse", "HEAD^"))
    with opened(gitea.clone_url(shop), secret=Secret("0" * 40)) as git, pytest.raises(AccessDenied):
        git.head(following(MAIN))


def test_a_pull_request_of_a_fork_is_fetched_by_its_commit_from_the_repository(
    gitea: GiteaHost, ada: Account, bob: Account, shop: str, tmp_path: Path
) -> None:
    gitea.collaborator(shop, bob, "read")
    number, sha = proposed(gitea, shop, bob, gitea.work(gitea.fork(shop, bob), bob, tmp_path / "fork"))
    found = gitea.pull_request(shop, number)
    assert (found["head"]["sha"], found["head"]["repo"]["full_name"]) == (sha, f"{bob.name}/shop")
    with opened(gitea.clone_url(shop), secret=Secret(ada.token)) as git:
        assert git.fetch(sha).commit.subject == "An idea"
        assert git.reaches(sha, found["merge_base"])


def test_a_push_is_proven_and_read(gitea: GiteaHost, ada: Account, shop: str, work: Work) -> None:
    with Inbox() as inbox:
        gitea.webhook(shop, f"{inbox.url}/webhooks/gitea", KEYS["GITEA"])
        sha = work.write("a", "1").commit("A change")
        work.push()
        come = inbox.wait(lambda each: each.headers["X-Gitea-Event"] == "push")
    event, _ = WEBHOOKS["gitea"].verified(come.headers, come.body, accepted(KEYS["GITEA"]))
    assert (come.path, event.kind, event.actor) == ("/webhooks/gitea", "push", ada.name)
    assert [(change.ref, change.after) for change in event.changes] == [(MAIN, sha)]
    assert gitea.clone_url(shop) in event.urls


@pytest.fixture(scope="module")
def life() -> Iterator[dict[str, Delivery]]:
    """What came of a pull request's life: the samples are called so, and its people, too."""
    with GiteaHost() as host, Inbox() as inbox:
        yield dict(PullRequests(host, inbox).life())


def test_each_step_of_a_pull_request_has_a_sample(life: dict[str, Delivery]) -> None:
    assert set(life) == set(RECORDED)


@pytest.mark.parametrize("sample", RECORDED.values(), ids=str)
def test_our_samples_are_what_a_gitea_sends(life: dict[str, Delivery], sample: Sample) -> None:
    come = life[sample.name]
    assert fields(come.document) == fields(sample.document)
    sent = {name for name in come.headers if name.startswith("X-")}
    assert sent == {name for name in sample.headers if name.startswith("X-")}
    event, _ = WEBHOOKS["gitea"].verified(come.headers, come.body, accepted(KEYS["GITEA"]))
    assert (event.kind, event.delivery) == (sample.kind, come.headers["X-Gitea-Delivery"])


def fields(value: Any, place: str = "") -> set[str]:
    """Return the paths of all that a document has, with its literals of an event: its action, and whose it is."""
    if isinstance(value, dict):
        return {found for name, each in value.items() for found in fields(each, f"{place}.{name}")}
    if isinstance(value, list):
        return {found for each in value for found in fields(each, f"{place}[]")} | {place}
    return {f"{place}={value}" if place in (".action", ".is_pull", ".pull_request.state", ".pull_request.merged") else place}
