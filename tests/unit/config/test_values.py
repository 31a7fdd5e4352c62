"""URLs, refs and secrets in a configuration: what is accepted, and what no message repeats."""

from __future__ import annotations

import pytest

from handler.config.load import parse
from tests.unit.config.test_mistakes import AUTH, REF, TARGET, mistakes


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("https://user:CANARY@git.example.com/shop.git", f", which holds credentials; {AUTH}"),
        ("https://CANARY@git.example.com/shop.git", f", which holds credentials; {AUTH}"),
        ("file:///CANARY", ", which has another scheme or none; write https://<host>/<path>"),
        ("ext::sh -c CANARY", ", which has another scheme or none; write https://<host>/<path>"),
        ("HTTPS://git.example.com/CANARY", ", which has another scheme or none; write https://<host>/<path>"),
        ("git@git.example.com:CANARY/shop.git", ", which has another scheme or none; write https://<host>/<path>"),
        ("https://git.example.com/shop.git?private_token=CANARY", ", which has a query or a fragment"),
        ("https://git.example.com/shop.git#CANARY", ", which has a query or a fragment"),
        ("https://git.example.com/CANARY shop.git", ", which holds a space, a backslash or a control character"),
        ("https://git.example.com:65536/CANARY", ", which has a port above 65535"),
        ("https://git.example.com/../CANARY", ", which has a `.` or `..` in its path"),
        ("https://git.example.com", ""),
        ("https:///CANARY", ""),
        ("https://-x/CANARY", ""),
        ("https://user:CAN/ARY@git.example.com/x", ""),
    ],
)
def test_a_url_is_never_shown(url: str, why: str) -> None:
    found = mistakes(TARGET.replace("https://git.example.com/shop.git", url))
    assert found == [f"a.yaml:5: targets[shop].repository.url: expected an https:// or http:// URL, found a URL{why}"]


@pytest.mark.parametrize("url", ["https://h/x", "http://127.0.0.1:8080/a.git", "https://[::1]:65535/~a/b", "https://git.example.com/a/@b"])
def test_a_url_as_git_hosts_have_them_is_accepted(url: str) -> None:
    assert parse(TARGET.replace("https://git.example.com/shop.git", url)).targets[0].repository.url == url


@pytest.mark.parametrize(
    ("alias", "accepted"),
    [
        ("git@git.example.com:acme/shop.git", True),
        ("ssh://git@git.example.com:22/acme/shop.git", True),
        ("https://git.example.com/acme/shop", True),
        ("git.example.com:acme/shop", True),
        ("https://token@git.example.com/acme/shop", False),
        ("ssh://git:password@git.example.com/acme/shop", False),
        ("nonsense", False),
    ],
)
def test_aliases(alias: str, accepted: bool) -> None:
    text = TARGET.replace("shop.git'}", f"shop.git', aliases: ['{alias}']}}")
    if accepted:
        assert parse(text).targets[0].repository.aliases == (alias,)
    else:
        (found,) = mistakes(text)
        assert "aliases[0]: expected a URL or host:path without credentials, found a URL" in found
        assert alias not in found


@pytest.mark.parametrize("name", ["main", "feature/a.b", "v1.2", "ünïcode", "a@b", "x-", "1.0-rc", "releases/2026"])
def test_names_that_git_allows(name: str) -> None:
    assert parse(TARGET + f"    revision: {{branch: {name}}}").targets[0].revision.branch == name


@pytest.mark.parametrize(
    "name", ["a b", "a~1", "a^", "a:b", "a?", "a*", "a[b", "a\\b", ".a", "a/.b", "a.lock", "a.lock/b", "a.", "/a", "\x7f"]
)
def test_names_that_git_refuses(name: str) -> None:
    escaped = name.replace("\\", "\\\\").replace("\x7f", "\\x7f")
    (found,) = mistakes(TARGET + f'    revision: {{tag: "{escaped}"}}')
    assert found.startswith(f"a.yaml:7: targets[shop].revision.tag: {REF}, found ")


@pytest.mark.parametrize(
    "secrets",
    [
        "CANARY",
        "[CANARY]",
        "[{value: CANARY}]",
        "[{CANARY}]",
        "[{env: 'CANARY '}]",
        '[{file: "CANARY\\0"}]',
        "[!CANARY x]",
        "*CANARY",
        "[&CANARY {env: '-'}]",
        "{CANARY: CANARY",
        "@CANARY",
        "%CANARY",
        "'CANARY",
        "[{env: [CANARY]}]",
        "CANARY: CANARY",
    ],
)
def test_a_secret_written_into_the_configuration_is_not_repeated(secrets: str) -> None:
    for line in (
        f"webhooks: {{github: {{secrets: {secrets}}}}}",
        f"defaults: {{repository: {{auth: {{basic: {{password: {secrets}}}}}}}}}",
    ):
        assert "CANARY" not in "\n".join(mistakes(TARGET + line))


@pytest.mark.parametrize("username", ["CAN:ARY", '"CANARY\\n:"', "[CANARY]", "1234567890"])
def test_a_token_written_as_user_name_is_not_repeated(username: str) -> None:
    line = f"defaults: {{repository: {{auth: {{basic: {{password: {{env: A}}, username: {username}}}}}}}}}"
    (found,) = mistakes(TARGET + line)
    assert not any(part in found for part in ("CANARY", "CAN:ARY", "1234567890"))
    assert "expected a user name" in found
