"""Which targets an event concerns, and the sentence that says why."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest

from handler.model import target_matching
from handler.model.event import Decision, Event, RefChange
from handler.model.target_matching import TargetIndex, WatchedRevision, repository_key

SHOP = WatchedRevision("shop", ("https://git.example.com/acme/shop.git", "https://mirror.example.com/shop"), "refs/heads/main")
DEV = WatchedRevision("dev", ("git@git.example.com:acme/shop.git",), "refs/heads/dev")
RELEASE = WatchedRevision("release", SHOP.urls, "refs/tags/v1.2")
FIXED = WatchedRevision("fixed", SHOP.urls)
VERSIONS = WatchedRevision("versions", SHOP.urls, semver=">=1.2 <2")
INFRA = WatchedRevision("infra", ("https://git.example.com/acme/infra",), "refs/heads/main")
ALL = (SHOP, DEV, RELEASE, FIXED, INFRA)


def decide(event: Event, targets: Iterable[WatchedRevision]) -> tuple[Decision, ...]:
    return target_matching.decide(event, TargetIndex(targets))


def concerns(event: Event, target: WatchedRevision) -> bool:
    return TargetIndex([target]).concerned(event) == (target,)


def push(url: str = SHOP.urls[0], ref: str = "refs/heads/main", *, deleted: bool = False) -> Event:
    return pushed(RefChange(ref, "" if deleted else "a" * 40, deleted), url=url)


def pushed(*changes: RefChange, url: str = SHOP.urls[0], more: bool = False) -> Event:
    return Event("bitbucket", "push", "1", (url,), changes, more)


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
        *((f"codecommit:{rest}", "") for rest in ("//shop", ":://shop", ":EU://shop", ":eu-west-1://")),
    ],
)
def test_repository_keys(url: str, key: str) -> None:
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
    assert not concerns(push(""), WatchedRevision("odd", ("",), "refs/heads/main"))


def test_a_push_is_decided_for_every_target_of_its_repository() -> None:
    assert decide(push(), ALL) == (
        Decision("shop", True, "it follows refs/heads/main", RefChange("refs/heads/main", "a" * 40)),
        Decision("dev", False, "it follows refs/heads/dev, and refs/heads/main was pushed"),
        Decision("release", False, "it follows refs/tags/v1.2, and refs/heads/main was pushed"),
        Decision("fixed", False, "it follows a fixed commit"),
    )


def test_an_alias_and_a_tag_match_too() -> None:
    found = decide(push("http://mirror.example.com/shop.git", "refs/tags/v1.2"), ALL)
    assert [decision.target for decision in found if decision.matched] == ["release"]


def test_a_deleted_branch_deploys_and_prunes_nothing() -> None:
    assert decide(push(deleted=True), [SHOP]) == (
        Decision("shop", False, "refs/heads/main was deleted: nothing is deployed, nothing is pruned"),
    )


def test_any_of_several_refs_may_match_and_each_target_gets_its_own() -> None:
    main, dev, gone = RefChange("refs/heads/main", "1" * 40), RefChange("refs/heads/dev", "2" * 40), RefChange("refs/heads/x", deleted=True)
    found = decide(pushed(gone, dev, main), [SHOP, DEV, RELEASE])
    assert [(each.target, each.matched, each.change.after) for each in found] == [
        ("shop", True, "1" * 40),
        ("dev", True, "2" * 40),
        ("release", False, ""),
    ]
    assert found[2].reason == "it follows refs/tags/v1.2, and refs/heads/dev, refs/heads/main were pushed and refs/heads/x was deleted"


def test_a_reason_names_a_few_refs_and_counts_the_rest() -> None:
    many = [RefChange(f"refs/heads/b{number}") for number in range(9)]
    assert decide(pushed(*many), [SHOP])[0].reason == (
        "it follows refs/heads/main, and refs/heads/b0, refs/heads/b1, refs/heads/b2, refs/heads/b3, refs/heads/b4 and 4 more were pushed"
    )


def test_a_ref_that_was_deleted_and_made_anew_in_one_push_is_there() -> None:
    change = RefChange("refs/heads/main", "1" * 40)
    assert decide(pushed(change, RefChange("refs/heads/main", deleted=True)), [SHOP])[0] == Decision(
        "shop", True, "it follows refs/heads/main", change
    )


def test_of_more_refs_than_are_listed_any_may_be_the_targets() -> None:
    some = RefChange("refs/heads/x", "1" * 40)
    found = decide(pushed(some, more=True), [SHOP, VERSIONS, FIXED])
    assert [(each.target, each.matched, each.change) for each in found] == [
        ("shop", True, RefChange("")),
        ("versions", True, RefChange("")),
        ("fixed", False, RefChange("")),
    ]
    assert found[0].reason == "it follows refs/heads/main, which may be among more refs than are listed"
    assert not decide(pushed(RefChange("refs/heads/main", deleted=True), more=True), [SHOP])[0].matched


@pytest.mark.parametrize(
    ("changes", "after", "said"),
    [
        ([RefChange("refs/tags/v1.3", "1" * 40)], "1" * 40, "refs/tags/v1.3 was pushed"),
        ([RefChange("refs/tags/nightly")], "", "refs/tags/nightly was pushed"),
        ([RefChange("refs/tags/v1.3", deleted=True)], "", "refs/tags/v1.3 was deleted"),
        (
            [RefChange("refs/tags/v1.3", "1" * 40), RefChange("refs/tags/v1.2", deleted=True), RefChange("refs/heads/main", "2" * 40)],
            "1" * 40,
            "refs/tags/v1.3 was pushed and refs/tags/v1.2 was deleted",
        ),
    ],
)
def test_any_tag_that_comes_or_goes_may_change_the_highest(changes: list[RefChange], after: str, said: str) -> None:
    (found,) = decide(pushed(*changes), [VERSIONS])
    assert (found.matched, found.change.after) == (True, after)
    assert found.reason == f"it follows the highest tag in >=1.2 <2, and {said}: the host is asked which is the highest now"


def test_a_branch_is_no_version() -> None:
    assert decide(push(), [VERSIONS]) == (
        Decision("versions", False, "it follows the highest tag in >=1.2 <2, and refs/heads/main was pushed"),
    )
    assert decide(pushed(), [VERSIONS])[0].reason.endswith("and no ref was pushed")


def test_what_the_configuration_suspends_is_not_run() -> None:
    paused = WatchedRevision("paused", SHOP.urls, "refs/heads/main", suspended=True)
    assert decide(push(), [paused]) == (Decision("paused", False, "suspended in the configuration"),)


AZURE = ("https://acme@dev.azure.com/acme/store/_git/shop", "git@ssh.dev.azure.com:v3/acme/store/shop")


@pytest.mark.parametrize(("sent", "configured"), [AZURE, AZURE[::-1]])
def test_azures_two_spellings_are_one_repository_by_an_alias_only(sent: str, configured: str) -> None:
    assert not concerns(push(sent), WatchedRevision("azure", (configured,), "refs/heads/main"))
    assert concerns(push(sent), WatchedRevision("azure", (configured, sent.replace("acme@", "")), "refs/heads/main"))


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


FLEET = TargetIndex(
    WatchedRevision(f"t{number:04}", (f"https://git.example.com/acme/repo-{number:04}",), "refs/heads/main") for number in range(3000)
)


def test_what_a_delivery_costs_does_not_grow_with_the_number_of_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    compared: list[str] = []
    fleet = TargetIndex(FLEET.targets)  # it remembers which repositories `near` returned

    def key_of(url: str) -> str:
        parsed.append(url)
        return repository_key(url)

    def near(_named: str, known: Sequence[str], **_bounds: object) -> list[str]:
        compared.extend(known)
        return list(known[:1])

    monkeypatch.setattr(target_matching, "repository_key", key_of)
    monkeypatch.setattr(difflib, "get_close_matches", near)
    assert [each.target for each in target_matching.decide(push("https://git.example.com/acme/repo-1234"), fleet)] == ["t1234"]
    assert len(parsed) <= 2
    for _ in range(5):
        (unknown,) = target_matching.decide(push("https://git.example.com/acme/repo-12345"), fleet)
        assert "the nearest one is" in unknown.reason
    assert 1 <= len(compared) <= 4 * target_matching.NEAR


@pytest.mark.parametrize(
    ("url", "nearest"),
    [
        ("https://git.example.com/acme/repo-1234-old", "git.example.com/acme/repo-1234"),
        ("https://git.example.com/acme/repo_0007", "git.example.com/acme/repo-0007"),
        ("https://mirror.internal/acme/repo-2222", "git.example.com/acme/repo-2222"),
    ],
)
def test_among_many_repositories_the_nearest_one_is_still_found(url: str, nearest: str) -> None:
    assert target_matching.decide(push(url), FLEET)[0].reason.endswith(f"the nearest one is {nearest}")


def test_the_index_of_some_targets_knows_no_other() -> None:
    some = TargetIndex(ALL).only(frozenset({"dev", "infra"}))
    assert [target.name for target in some.targets] == ["dev", "infra"]
    assert [target.name for target in some.concerned(push())] == ["dev"]
    assert "infra" in target_matching.decide(push("https://git.example.com/acme/infr"), some)[0].reason
    assert "mirror" not in target_matching.decide(push("https://mirror.example.com/shop"), some)[0].reason.partition(";")[2]


def test_a_target_that_follows_others_is_run_by_no_push() -> None:
    one = WatchedRevision("prod", SHOP.urls, "refs/heads/main", promoters=("staging",))
    several = WatchedRevision("late", SHOP.urls, "refs/heads/main", promoters=("eu", "us"))
    assert [(each.matched, each.reason) for each in decide(push(), (one, several))] == [
        (False, "it follows what staging has proven"),
        (False, "it follows what eu, us have proven"),
    ]


# --- pull requests
PULL = Event("github", "pull-request", "1", SHOP.urls, pull_request=12)
SHOP_PLANS, DEV_PLANS = replace(SHOP, plans_pull_requests=True), replace(DEV, plans_pull_requests=True)
OFF = "plans on pull requests are off: write `feedback: {pullRequests: true}` in its repository"


@pytest.mark.parametrize(
    ("targets", "name"),
    [
        ((SHOP_PLANS, DEV_PLANS, FIXED), "shop~12"),
        ((FIXED, RELEASE, DEV_PLANS, SHOP_PLANS, INFRA), "dev~12"),
        ((replace(SHOP_PLANS, suspended=True), DEV_PLANS), "dev~12"),
        ((SHOP, DEV_PLANS), "dev~12"),
        ((replace(SHOP_PLANS, promoters=("staging",)),), "shop~12"),
    ],
)
def test_a_pull_request_is_decided_once_in_the_name_of_the_first_target_that_plans(targets: tuple[WatchedRevision, ...], name: str) -> None:
    assert decide(PULL, targets) == (
        Decision(name, True, "the plan of pull request 12 is made for the targets that follow its base branch"),
    )


def test_where_no_target_plans_each_says_why() -> None:
    paused = replace(SHOP_PLANS, name="paused", suspended=True)
    template = replace(SHOP, name="template", has_instances=True)
    assert [(each.target, each.matched, each.reason) for each in decide(PULL, (SHOP, RELEASE, VERSIONS, FIXED, paused, template))] == [
        ("shop", False, OFF),
        ("release", False, "it follows no branch, and plans on pull requests are of those that follow their base"),
        ("versions", False, "it follows no branch, and plans on pull requests are of those that follow their base"),
        ("fixed", False, "it follows no branch, and plans on pull requests are of those that follow their base"),
        ("paused", False, "suspended in the configuration"),
        ("template", False, "its instances are planned on no pull request"),
    ]


def test_a_pull_request_of_an_unknown_repository_is_explained_like_a_push() -> None:
    elsewhere = replace(PULL, urls=("https://git.example.com/acme/shpo.git",))
    assert decide(elsewhere, (SHOP_PLANS,)) == decide(push("https://git.example.com/acme/shpo.git"), (SHOP_PLANS,))


def test_targets_that_plan_run_on_pushes_as_they_did() -> None:
    assert decide(push(), (SHOP_PLANS, DEV_PLANS)) == decide(push(), (SHOP, DEV))
