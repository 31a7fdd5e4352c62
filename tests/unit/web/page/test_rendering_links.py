"""Links lead to http and https alone, and to where the configuration says git is."""

from __future__ import annotations

from handler.web.page.rendering import commit_address, repository_address, web_address
from tests.unit.rows import each_row
from tests.unit.state.samples import sha

HOSTILE = [
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    " javascript:alert(1)",
    "java\nscript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "vbscript:x",
    "file:///etc/passwd",
    "//evil.example.com",
    "https:evil.example.com",
    "https://",
    "https://user:secret@git.example.com/x",
    "https://token@git.example.com/x",
    'https://git.example.com/"><script>',
    "https://git.example.com/a b",
    "https://git.example.com/\u202ex",
    "https://[::1/x",
    "http://git.example.com\\@evil.example.com",
    "blob:https://x",
    "",
]


@each_row("text", HOSTILE)
def test_what_isnt_a_plain_web_address_leads_nowhere(text: str) -> None:
    assert web_address(text) == repository_address(text) == commit_address(text, sha()) == ""


@each_row(
    ("url", "repository", "commit"),
    [
        ("https://github.com/acme/shop.git", "https://github.com/acme/shop", "https://github.com/acme/shop/commit/{}"),
        ("https://gitlab.example.com/a/b/c.git", "https://gitlab.example.com/a/b/c", "https://gitlab.example.com/a/b/c/-/commit/{}"),
        ("https://bitbucket.org/acme/shop", "https://bitbucket.org/acme/shop", "https://bitbucket.org/acme/shop/commits/{}"),
        ("git@github.com:acme/shop.git", "https://github.com/acme/shop", "https://github.com/acme/shop/commit/{}"),
        (
            "ssh://git@gitea.example.com:2222/acme/shop.git",
            "https://gitea.example.com/acme/shop",
            "https://gitea.example.com/acme/shop/commit/{}",
        ),
        ("https://git.example.com/acme/shop.git", "https://git.example.com/acme/shop", ""),
        ("git@git.example.com:acme/shop.git", "", ""),
        ("https://notgithub.com/acme/shop", "https://notgithub.com/acme/shop", ""),
    ],
)
def test_repositories_and_commits_of_known_hosts_are_led_to(url: str, repository: str, commit: str) -> None:
    assert repository_address(url) == repository
    assert commit_address(url, sha()) == commit.format(sha())


@each_row("commit", ["", "main", "../../x", "a" * 39, '"' * 40])
def test_only_a_commits_id_is_led_to(commit: str) -> None:
    assert commit_address("https://github.com/acme/shop", commit) == ""
