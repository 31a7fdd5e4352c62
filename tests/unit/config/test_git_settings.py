"""Ways to sign in and ranges of versions: what is accepted, and the words for what isn't."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from semantic_version import NpmSpec

from handler.config.git_settings import git_url
from handler.config.load import parse
from handler.config.value_formats import FORMS
from tests.unit.config.config_mistakes import SERVER, TARGET, mistakes
from tests.unit.rows import each_row

pytestmark = pytest.mark.slow

SEMVER = "expected a range of versions such as >=1.2 <2, ^1.2 or 1.x"
NO_V = "leave it out: tags with and without it count alike"
KEYED = "ssh: {privateKey: {file: k}, knownHosts: h}"
APP = "githubApp: {appId: a, installationId: 1, privateKey: {file: k}}"
NEEDS_KEY = (
    ".auth: an ssh:// URL needs a key; add `auth: {ssh: {privateKey: {file: /run/secrets/key}, knownHosts: /etc/anneal/known_hosts}}`"
)


@each_row(
    ("url", "auth", "expected"),
    [
        (
            "https://h/x",
            f"{{basic: {{username: a, password: {{env: A}}}}, {APP}}}",
            ".auth: expected at most one of basic, ssh, githubApp, found basic and githubApp",
        ),
        ("https://h/x", f"{{{KEYED}}}", ".auth: auth.ssh is for ssh:// URLs; write the URL as ssh://git@<host>/<path>"),
        ("ssh://git@h/x", "{}", NEEDS_KEY),
        ("ssh://git@h/x", f"{{{APP}}}", NEEDS_KEY),
        (
            "ssh://git@h/x",
            "{ssh: {privateKey: {file: k}}}",
            ".auth.ssh.knownHosts: is required and missing; add `knownHosts: /etc/anneal/ca.pem`",
        ),
        ("ssh://git@h/x", "{ssh: {knownHosts: h}}", ".auth.ssh.privateKey: is required and missing; add `privateKey:`"),
        ("ssh://git@h/x", f"{{{KEYED[:-1]}, passphrase: CANARY}}}}", ".auth.ssh.passphrase: expected a mapping, found text"),
        ("ssh://git@h/x", "{ssh: {privateKey: CANARY, knownHosts: h}}", ".auth.ssh.privateKey: expected a mapping, found text"),
        (
            "https://h/x",
            f"{{{APP.replace('appId: a', 'appId: 12')}}}",
            '.auth.githubApp.appId: expected the id of a GitHub App, found 12, which YAML reads as a number; write "12"',
        ),
        (
            "https://h/x",
            f"{{{APP.replace('appId: a, ', '')}}}",
            ".auth.githubApp.appId: is required and missing; add `appId: Iv1.0123456789abcdef`",
        ),
        (
            "https://h/x",
            f"{{{APP.replace(': 1,', ': 0,')}}}",
            ".auth.githubApp.installationId: expected a whole number from 1 to 1000000000000, found 0",
        ),
        (
            "https://h/x",
            f"{{{APP.replace(': 1,', ': one,')}}}",
            '.auth.githubApp.installationId: expected a whole number from 1 to 1000000000000, found "one"',
        ),
        (
            "https://h/x",
            f"{{{APP[:-1]}, apiUrl: api.github.com}}}}",
            f".auth.githubApp.apiUrl: {SERVER}, found a URL, which has another scheme or none; write https://<host>/<path>",
        ),
    ],
)
def test_repository_auth_has_one_way_that_fits_the_url(url: str, auth: str, expected: str) -> None:
    text = TARGET.replace("{url: 'https://git.example.com/shop.git'}", f"{{url: '{url}', auth: {auth}}}")
    assert mistakes(text) == [f"a.yaml:5: targets[shop].repository{expected}"]


@each_row(
    ("line", "expected"),
    [
        ("revision: {semver: 1.2, tag: v1}", f'.revision.semver: {SEMVER}, found 1.2, which YAML reads as a number; write "1.2"'),
        ("revision: {semver: latest}", f'.revision.semver: {SEMVER}, found "latest"'),
        ("revision: {semver: '>=v1.2'}", f'.revision.semver: {SEMVER}, found ">=v1.2", which has a `v` before a number; {NO_V}'),
        ("revision: {semver: v1.2}", f'.revision.semver: {SEMVER}, found "v1.2", which has a `v` before a number; {NO_V}'),
        ("verify: {}", ".verify: expected at least one key in ssh or pgp, found none"),
        ("verify: {ssh: [], pgp: []}", ".verify: expected at least one key in ssh or pgp, found none"),
        ("verify: {ssh: [/etc/key.pub]}", ".verify.ssh[0]: expected a public SSH key as in authorized_keys, found something else"),
        ("verify: {ssh: [ssh-dss AAAA]}", ".verify.ssh[0]: expected a public SSH key as in authorized_keys, found something else"),
        ("verify: {ssh: ssh-ed25519 AAAA}", ".verify.ssh: expected a list, found text; write ssh: [ssh-ed25519 AAAA]"),
        ("verify: {pgp: [0123ABCD]}", ".verify.pgp[0]: expected an armored OpenPGP public key, found something else"),
    ],
)
def test_mistakes_in_the_revision(line: str, expected: str) -> None:
    assert mistakes(TARGET + "    " + line) == [f"a.yaml:7: targets[shop]{expected}"]


RANGES = (
    *("1", "1.2", "1.2.3", "=1.2.3", "^1.2", "~1.2", ">=1.2 <2", ">1 <=1.9.9", "1.x", "1.*", "1.2.x", "1.x.x", "*", "1.2 - 2"),
    *("1.0.0 - 1.9.9-rc.1", "^1.2 || ^3", "1.2 - 1.4 || >=2 <3", ">=1.2.0-rc.1 <1.2.0", "1.2.3-alpha.1-x.0", "0.0.0", "=1.0.0-0"),
)
NO_RANGES = (
    *("", " 1", "1 ", "1  2", ">", "x", "^", "1.", "1..2", "1.x.3", "01.2", "01.2.3", "1.2.3-", "1.2.3-01", "1.2-rc", "1.2.3.4"),
    *("1.2.3+build", "><1", "1||2", "1 - 2 3", ">=1 - 2", "1.2.3-a..b", ">= 1.2", ">=1.2,<2", "~1.2.0-rc.1"),
)


@each_row("text", RANGES)
def test_semver_ranges(text: str) -> None:
    assert parse(TARGET + f"    revision: {{semver: '{text}'}}").targets[0].revision.semver == text
    NpmSpec(text)


@each_row("text", NO_RANGES)
def test_what_is_no_semver_range(text: str) -> None:
    assert FORMS["semver"].complaint(text)


@given(st.from_regex(FORMS["semver"].pattern, fullmatch=True))
def test_every_semver_range_that_is_accepted_can_be_used(text: str) -> None:
    NpmSpec(text)


@each_row(
    ("text", "url"),
    [
        ("git@git.example.com:acme/shop.git", "ssh://git@git.example.com/acme/shop.git"),
        ("me@host:/srv/shop.git", "ssh://me@host/srv/shop.git"),
        ("git.example.com:acme/shop", "ssh://git@git.example.com/acme/shop"),
    ],
)
def test_the_short_form_of_git_is_a_url_of_ssh(text: str, url: str) -> None:
    assert git_url(text) == url


@each_row(
    "text", ["https://h/x", "ssh://git@h/x", "file:///srv/x", "h:22:x", "h://x", "u:token@h/x", "/srv/a:b", "../a", "-o@h", "h:", "h:a b"]
)
def test_what_is_not_the_short_form_of_git_stays(text: str) -> None:
    assert git_url(text) == text
