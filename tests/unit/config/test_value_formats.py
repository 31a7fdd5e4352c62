"""URLs, refs and secrets in a configuration: what is accepted, and what no message repeats."""

from __future__ import annotations

import pytest
import yaml

from handler.config.load import parse
from handler.config.value_formats import FORMS
from tests.unit.config.config_mistakes import AUTH, REF, TARGET, mistakes
from tests.unit.rows import each_row

SCHEME = "write https://<host>/<path> or ssh://git@<host>/<path>"
KEY = "ssh:// URLs sign in by a key: `auth: {ssh: {privateKey: ..., knownHosts: ...}}`"


@pytest.mark.slow
@each_row(
    ("url", "why"),
    [
        ("https://user:CANARY@git.example.com/shop.git", f", which holds credentials; {AUTH}"),
        ("https://CANARY@git.example.com/shop.git", f", which holds credentials; {AUTH}"),
        ("file:///CANARY", f", which has another scheme or none; {SCHEME}"),
        ("ext::sh -c CANARY", f", which has another scheme or none; {SCHEME}"),
        ("HTTPS://git.example.com/CANARY", f", which has another scheme or none; {SCHEME}"),
        ("git@git.example.com:CANARY/shop.git", f", which has another scheme or none; {SCHEME}"),
        ("https://git.example.com/shop.git?private_token=CANARY", ", which has a query or a fragment"),
        ("https://git.example.com/shop.git#CANARY", ", which has a query or a fragment"),
        ("https://git.example.com/CANARY shop.git", ", which holds a space, a backslash or a control character"),
        ("https://git.example.com:65536/CANARY", ", which has a port above 65535"),
        ("https://git.example.com/../CANARY", ", which has a `.` or `..` in its path"),
        ("https://git.example.com", ""),
        ("https:///CANARY", ""),
        ("https://-x/CANARY", ""),
        ("https://user:CAN/ARY@git.example.com/x", ""),
        ("ssh://git:CANARY@git.example.com/shop.git", f", which holds a password; {KEY}"),
        ("ssh://git:CAN@ARY@git.example.com/shop.git", f", which holds a password; {KEY}"),
        ("ssh://@git.example.com/CANARY", ""),
        ("ssh://git@-oProxyCommand=CANARY/x", ""),
        ("ssh://git@git.example.com:70000/CANARY", ", which has a port above 65535"),
        ("ssh://git@git.example.com", ""),
    ],
)
def test_a_url_is_never_shown(url: str, why: str) -> None:
    found = mistakes(TARGET.replace("https://git.example.com/shop.git", url))
    assert found == [f"a.yaml:5: targets[shop].repository.url: expected an https://, http:// or ssh:// URL, found a URL{why}"]


@each_row("url", ["https://h/x", "http://127.0.0.1:8080/a.git", "https://[::1]:65535/~a/b", "https://git.example.com/a/@b"])
def test_a_url_as_git_hosts_have_them_is_accepted(url: str) -> None:
    assert parse(TARGET.replace("https://git.example.com/shop.git", url)).targets[0].repository.url == url


@each_row(
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
def test_repository_aliases(alias: str, accepted: bool) -> None:
    text = TARGET.replace("shop.git'}", f"shop.git', aliases: ['{alias}']}}")
    if accepted:
        assert parse(text).targets[0].repository.aliases == (alias,)
    else:
        (found,) = mistakes(text)
        assert "aliases[0]: expected a URL or host:path without credentials, found a URL" in found
        assert alias not in found


@each_row("name", ["main", "feature/a.b", "v1.2", "ünïcode", "a@b", "x-", "1.0-rc", "releases/2026"])
def test_refs_that_git_allows(name: str) -> None:
    assert parse(TARGET + f"    revision: {{branch: {name}}}").targets[0].revision.branch == name


@each_row("name", ["a b", "a~1", "a^", "a:b", "a?", "a*", "a[b", "a\\b", ".a", "a/.b", "a.lock", "a.lock/b", "a.", "/a", "\x7f"])
def test_refs_that_git_refuses(name: str) -> None:
    escaped = name.replace("\\", "\\\\").replace("\x7f", "\\x7f")
    (found,) = mistakes(TARGET + f'    revision: {{tag: "{escaped}"}}')
    assert found.startswith(f"a.yaml:7: targets[shop].revision.tag: {REF}, found ")


@each_row(
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


@each_row("username", ["CAN:ARY", '"CANARY\\n:"', "[CANARY]", "1234567890"])
def test_a_token_written_as_user_name_is_not_repeated(username: str) -> None:
    line = f"defaults: {{repository: {{auth: {{basic: {{password: {{env: A}}, username: {username}}}}}}}}}"
    (found,) = mistakes(TARGET + line)
    assert not any(part in found for part in ("CANARY", "CAN:ARY", "1234567890"))
    assert "expected a user name" in found


@each_row("url", ["ssh://h/x", "ssh://git@127.0.0.1:2222/a.git", "ssh://git@[::1]:22/~a/b"])
def test_a_url_for_ssh_is_accepted_with_its_key(url: str) -> None:
    auth = "auth: {ssh: {privateKey: {file: k}, knownHosts: h}}"
    text = TARGET.replace("{url: 'https://git.example.com/shop.git'}", f"{{url: '{url}', {auth}}}")
    assert parse(text).targets[0].repository.url == url


@each_row("bind", ["127.0.0.1:9464", "[::]:0", "localhost:65535", ""])
def test_bind_takes_host_and_port(bind: str) -> None:
    assert parse(TARGET + f"metrics: {{bind: '{bind}'}}").metrics.bind == bind


PRIVATE = "-----BEGIN OPENSSH PRIVATE KEY-----\\nCANARY\\n-----END OPENSSH PRIVATE KEY-----"


@each_row("key", ["ssh", "pgp"])
def test_a_private_key_in_place_of_a_public_one_is_not_repeated(key: str) -> None:
    (found,) = mistakes(TARGET + f'    verify: {{{key}: ["{PRIVATE}"]}}')
    assert "CANARY" not in found


@each_row("kind", [kind for kind, form in FORMS.items() if form.example and not form.lone])
def test_every_example_is_what_it_shows(kind: str) -> None:
    assert FORMS[kind].complaint(FORMS[kind].example) is None
    if kind not in ("semver", "glob"):  # in these, `add ...` is never said: they aren't required
        assert isinstance(yaml.safe_load(FORMS[kind].example), str)
