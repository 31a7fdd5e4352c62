"""Which targets an event concerns, and the sentence that says why."""

from __future__ import annotations

import pytest

from handler.model.event import Decision, Event
from handler.model.match import Watched, concerns, decide, repository_key

SHOP = Watched("shop", ("https://git.example.com/acme/shop.git", "https://mirror.example.com/shop"), "refs/heads/main")
DEV = Watched("dev", ("git@git.example.com:acme/shop.git",), "refs/heads/dev")
RELEASE = Watched("release", SHOP.urls, "refs/tags/v1.2")
FIXED = Watched("fixed", SHOP.urls, "")
INFRA = Watched("infra", ("https://git.example.com/acme/infra",), "refs/heads/main")
ALL = (SHOP, DEV, RELEASE, FIXED, INFRA)


def push(url: str = SHOP.urls[0], ref: str = "refs/heads/main", *, deleted: bool = False) -> Event:
    return Event("github", "push", "1", (url,), ref, "a" * 40, deleted=deleted)


@pytest.mark.parametrize(
    "url",
    [
        "https://git.example.com/acme/shop.git",
        "https://git.example.com/acme/shop",
        "https://git.example.com/acme/shop/",
        "https://git.example.com/acme/shop.git/",
        "http://GIT.Example.COM:8080/acme/shop.git",
        "https://user:token@git.example.com/acme/shop",
        "ssh://git@git.example.com:2222/acme/shop.git",
        "git://git.example.com/acme/shop.git",
        "git@git.example.com:acme/shop.git",
        "git.example.com:acme/shop",
    ],
)
def test_every_spelling_of_a_repository_is_the_same(url: str) -> None:
    assert repository_key(url) == "git.example.com/acme/shop"


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://[::1]:8080/shop.git", "::1/shop"),
        ("https://git.example.com/Acme/Shop", "git.example.com/Acme/Shop"),
        ("https://git.example.com", ""),
        ("https://git.example.com/", ""),
        ("https:///shop", ""),
        ("file:///srv/shop.git", ""),
        ("shop", ""),
        ("", ""),
        ("://", ""),
        (":", ""),
        ("@:x", ""),
        ("[", ""),
    ],
)
def test_keys(url: str, key: str) -> None:
    assert repository_key(url) == key


@pytest.mark.parametrize(
    "url",
    [
        "https://git.example.com/acme/shop2",
        "https://git.example.com.evil.example/acme/shop",
        "https://evil.example/git.example.com/acme/shop",
        "",
    ],
)
def test_another_repository_is_another(url: str) -> None:
    assert not concerns(push(url), SHOP)


def test_a_repository_without_a_key_matches_nothing_not_even_itself() -> None:
    assert not concerns(push(""), Watched("odd", ("",), "refs/heads/main"))


def test_a_push_is_decided_for_every_target_of_its_repository() -> None:
    assert decide(push(), ALL) == (
        Decision("shop", True, "it follows refs/heads/main"),
        Decision("dev", False, "it follows refs/heads/dev, and refs/heads/main was pushed"),
        Decision("release", False, "it follows refs/tags/v1.2, and refs/heads/main was pushed"),
        Decision("fixed", False, "it follows a fixed commit"),
    )


def test_an_alias_and_a_tag_match_too() -> None:
    found = decide(push("http://mirror.example.com/shop.git", "refs/tags/v1.2"), ALL)
    assert [decision.target for decision in found if decision.matched] == ["release"]


def test_a_branch_named_like_the_tag_does_not_match_it() -> None:
    assert not any(decision.matched for decision in decide(push(ref="refs/heads/v1.2"), ALL))


def test_a_deleted_branch_deploys_and_prunes_nothing() -> None:
    assert decide(push(deleted=True), [SHOP]) == (
        Decision("shop", False, "refs/heads/main was deleted: nothing is deployed, nothing is pruned"),
    )


def test_a_ping_is_answered_for_the_targets_it_reaches() -> None:
    assert [(d.target, d.matched) for d in decide(Event("github", "ping", "1", INFRA.urls), ALL)] == [("infra", False)]
    assert "ping" in decide(Event("github", "ping", "1", INFRA.urls), ALL)[0].reason


def test_a_ping_of_an_organisation_names_no_repository() -> None:
    assert decide(Event("github", "ping", "1"), ALL) == (Decision("", False, "a ping that names no repository"),)


def test_another_event_says_what_it_is() -> None:
    assert decide(Event("github", "other", "1", note="a star event asks for nothing"), ALL) == (
        Decision("", False, "a star event asks for nothing"),
    )


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        (
            "https://git.example.com/acme/shpo.git",
            "no target follows the repository git.example.com/acme/shpo; the nearest one is git.example.com/acme/shop",
        ),
        ("https://elsewhere.test/zzz", "no target follows the repository elsewhere.test/zzz"),
        ("https://user:hunter2@elsewhere.test/zzz", "no target follows the repository elsewhere.test/zzz"),
        ("nonsense", "no target follows the repository it names"),
    ],
)
def test_an_unknown_repository_is_explained_with_the_nearest_one_and_without_credentials(url: str, reason: str) -> None:
    assert decide(push(url), ALL) == (Decision("", False, reason),)
