"""The page's settings: what is refused, in which words and where, and its secrets."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from handler.config.load import parse
from handler.config.remote_secrets import SecretClocks
from handler.config.secret_rotation import EVERY, Rotation
from handler.config.secrets import DOOR, RUNS, resolve_all, resolve_known
from handler.model.errors import SecretUnavailable
from tests.fakes.page_visits import PAGE, PAGE_SECRETS, page_settings
from tests.unit.config.config_mistakes import TARGET, mistakes
from tests.unit.rows import each_row

BLOCK = """page:
  url: https://anneal.example.com
  key: {env: K}
  tokens: [{name: ada, secret: {env: A}}]
  roles: [{role: viewer, groups: [a]}]
"""
ROLES = "  roles: [{role: viewer, groups: [a]}]\n"
ISSUER = "{issuer: 'https://login.example.com', clientId: a,"


WAY = "tokens: [{name: ada, secret: {env: A}}]"
WRONG_URL = "8: page.url: expected the https:// address of the page, without a path, found a URL, which"


@each_row(
    ("before", "after", "expected"),
    [
        (
            f"  {WAY}\n",
            "",
            "8: page: expected a way to sign in (proxy, oidc or tokens), found none; add `tokens: [{name: ada,",
        ),
        (
            WAY,
            "proxy: {userHeader: X-User}",
            "10: page.proxy.secret: is required: without it all that reach the port could say who",
        ),
        (
            WAY,
            "proxy: {secret: {env: P}, userHeader: x-anneal-proxy}",
            "10: page.proxy.userHeader: x-anneal-proxy is named twice; name",
        ),
        (
            WAY,
            "proxy: {secret: {env: P}, userHeader: X_User}",
            "10: page.proxy.userHeader: expected the name of a header (A-Z, a-z,",
        ),
        (WAY, f"oidc: {ISSUER} scopes: [email]}}", "10: page.oidc.scopes: openid is missing; write `scopes: [openid, email]`"),
        (
            WAY,
            f"{WAY[:-1]}, {{name: ada, secret: {{env: B}}}}]",
            '10: page.tokens.name: "ada" is taken, first at a.yaml:10; names are',
        ),
        ("https://anneal", "http://anneal", f"{WRONG_URL} isn't encrypted and isn't on this machine; write https://<host>"),
        ("example.com", "Example.com", f"{WRONG_URL} has capital letters"),
        ("example.com", "example.com/", f"{WRONG_URL} has a path"),
        ("example.com", "example.com:443", f"{WRONG_URL} names the port that goes without saying; leave it out"),
        (
            ROLES,
            "",
            "8: page.roles: expected at least one row, found none: the page would show nothing; add `roles: [{role: oper",
        ),
        (
            "groups: [a]",
            "targets: [shop]",
            "11: page.roles[0]: expected groups or users, found none: the row gives its role to no person;",
        ),
        ("groups: [a]", "groups: [a], targets: []", "11: page.roles[0].targets: expected at least one, found an empty list"),
        ("groups: [a]", "groups: [a], targets: [shpo]", "11: page.roles[0].targets[0]: expected a target's name or a glob of names, found"),
        ("role: viewer", "role: admin", '11: page.roles[0].role: expected one of viewer, operator, found "admin"'),
        ("  key: {env: K}\n", "", "8: page.key: is required and missing"),
    ],
)
def test_what_is_refused_is_said_with_its_line_and_a_way_out(before: str, after: str, expected: str) -> None:
    assert parse(TARGET + BLOCK).page
    assert before in BLOCK
    (found,) = mistakes(TARGET + BLOCK.replace(before, after, 1))
    assert found.startswith(f"a.yaml:{expected}")


def test_the_door_alone_resolves_the_page_s_secrets_and_shows_none() -> None:
    settings = page_settings()
    found = resolve_all(settings, PAGE_SECRETS, needs=DOOR)
    page = found.page()
    assert page is not None
    assert (page.key.reveal(), [token.name for token, _ in page.tokens]) == (PAGE_SECRETS["PAGE_KEY"], ["ada", "bob", "eve"])
    assert (page.proxy and page.proxy.reveal(), page.oidc and page.oidc.reveal()) == (PAGE_SECRETS["PROXY"], PAGE_SECRETS["CLIENT"])
    for value in PAGE_SECRETS.values():
        assert value not in f"{page!r} {found!r}"
    assert resolve_all(settings, {}, needs=RUNS).page() is None


@each_row(
    ("changed", "expected"),
    [
        ({"PAGE_KEY": "CANARY-key-of-24-letters"}, "page.key: environment variable PAGE_KEY is shorter than 32 characters; make one with"),
        ({"PROXY": "CANARY"}, "page.proxy.secret: environment variable PROXY is shorter than 16 characters; make one with"),
        ({"ADA": "CANARY"}, "page.tokens[ada].secret: environment variable ADA is shorter than 16 characters; make one with"),
        (
            {"BOB": PAGE_SECRETS["ADA"]},
            "page.tokens[bob].secret: environment variable BOB has the same value as the token ada",
        ),
        ({"PAGE_KEY": ""}, "page.key: environment variable PAGE_KEY is empty; export PAGE_KEY="),
    ],
)
def test_a_weak_secret_is_refused_by_its_place(changed: dict[str, str], expected: str) -> None:
    with pytest.raises(SecretUnavailable) as raised:
        resolve_all(page_settings(), PAGE_SECRETS | changed, needs={"page"})
    assert str(raised.value).startswith(expected)
    assert "\n" not in str(raised.value)
    assert not any(value in str(raised.value) for value in changed.values() if value)


def test_without_its_key_there_is_no_page_whatever_else_is_there() -> None:
    secrets, problems = resolve_known(
        page_settings(), {name: PAGE_SECRETS[name] for name in PAGE_SECRETS if name != "PAGE_KEY"}, needs={"page"}
    )
    assert secrets.page() is None
    assert [problem.subject for problem in problems] == ["page.key"]


def test_a_changed_key_and_token_are_taken_up_and_a_broken_one_is_not(tmp_path: Path) -> None:
    now, key, token = [0.0], tmp_path / "key", tmp_path / "token"

    def write(file: Path, value: str, at: int) -> None:
        file.write_text(value)
        os.utime(file, (1_700_000_000 + at, 1_700_000_000 + at))
        now[0] += EVERY * 2

    write(key, "k" * 32, 1)
    write(token, "t" * 16, 1)
    text = PAGE.replace("{env: PAGE_KEY}", f"{{file: {key}}}").replace("{env: ADA}", f"{{file: {token}}}")
    rotation = Rotation(page_settings(text), PAGE_SECRETS, needs=DOOR, clocks=SecretClocks(lambda: now[0], lambda: now[0]))

    def seen() -> tuple[str, bool]:
        page = rotation.page()
        assert page is not None
        return page.key.reveal(), page.token(token.read_bytes()) is not None

    assert seen() == ("k" * 32, True)
    write(key, "n" * 40, 2)
    write(token, "u" * 16, 2)
    assert seen() == ("n" * 40, True)
    write(key, "short", 3)
    write(token, "short", 3)
    assert seen() == ("n" * 40, False)
