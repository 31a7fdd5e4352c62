"""Who promotes for whom: names and globs, mistakes with their line, circles, other repositories."""

from __future__ import annotations

import pytest

from handler.config.load import parse
from handler.config.settings import Settings
from handler.config.target_order import followers, promoters
from handler.model.errors import ConfigInvalid
from tests.unit.rows import each_row

HEAD = """apiVersion: anneal.dev/v1alpha1
kind: Config
defaults: {repository: {url: 'https://git.example.com/shop.git'}, namespaces: [shop]}
"""


def configured(*targets: str) -> Settings:
    return parse(HEAD + "targets:\n" + "".join(f"  - {{{target}}}\n" for target in targets))


def refused(*targets: str) -> list[str]:
    with pytest.raises(ConfigInvalid) as refusal:
        configured(*targets)
    return [str(problem) for problem in refusal.value.problems]


def following(name: str, sources: str, more: str = "") -> str:
    return f"name: {name}, revision: {{promoted: {{from: {sources}}}}}{more}"


def test_one_name_stands_without_a_list_and_the_branch_is_main() -> None:
    settings = configured("name: staging", following("prod", "staging"))
    prod = settings.targets[1]
    assert prod.revision.ref == "refs/heads/main"
    assert str(prod.revision) == "refs/heads/main, promoted from staging"
    assert prod.revision.promoted is not None
    assert (prod.revision.promoted.from_, prod.revision.promoted.soak) == (("staging",), 1800.0)
    assert promoters(settings, prod) == ("staging",)
    assert promoters(settings, settings.targets[0]) == ()


def test_a_glob_means_every_other_target_that_it_matches_once() -> None:
    settings = configured("name: shop-eu", "name: shop-us", "name: other", following("shop-all", "['shop-*', shop-eu]"))
    assert promoters(settings, settings.targets[3]) == ("shop-eu", "shop-us")
    assert followers(settings) == {"shop-eu": ("shop-all",), "shop-us": ("shop-all",)}


def test_those_of_another_installation_are_not_looked_for_here() -> None:
    settings = configured("name: prod, revision: {promoted: {from: elsewhere, installation: staging}}", "name: elsewhere")
    assert promoters(settings, settings.targets[0]) == ("elsewhere",)
    assert followers(settings) == {}  # that is another target of the same name


@each_row(
    ("targets", "said"),
    [
        (("name: b", following("prod", "zzz")), "zzz is not configured; known: b, prod. One of another installation needs `cluster`"),
        (("name: shop-staging", following("prod", "shop-stagin")), "shop-stagin is not configured; did you mean `shop-staging`?"),
        (("name: staging", following("prod", "'other-*'")), "other-* matches no other target"),
        ((following("prod", "prod"),), "targets wait for each other in a circle: prod → prod"),
        ((following("a", "b"), following("b", "a")), "targets wait for each other in a circle: a → b → a"),
        ((following("a", "c"), following("b", "'[a]'"), following("c", "b")), "in a circle: a → c → b → a"),
        (
            ("name: staging, dependsOn: [prod]", following("prod", "staging")),
            "in a circle: prod → staging → prod; let one of them follow a branch, or take one out of `dependsOn`",
        ),
        (
            ("name: base, dependsOn: [b]", following("a", "base"), "name: b, dependsOn: [a]"),
            "in a circle: a → base → b → a; let",
        ),
        (
            ("name: staging, repository: {url: 'https://git.example.com/else.git'}", following("prod", "staging")),
            "staging is of another repository, https://git.example.com/else.git: its commits are none of https://git.example.com/shop.git",
        ),
        (("name: prod, revision: {promoted: {from: []}}",), "expected at least one target, found an empty list"),
        (("name: prod, revision: {promoted: {from: 'a*', installation: x}}",), "a* is a glob, and the targets of another installation"),
        (("name: staging", "name: prod, revision: {tag: v1, promoted: {from: staging}}"), "tag and promoted exclude each other"),
        (("name: staging", "name: prod, revision: {semver: 1.x, promoted: {from: staging}}"), "semver and promoted exclude each other"),
    ],
)
def test_a_mistake_is_named_with_its_line(targets: tuple[str, ...], said: str) -> None:
    found = refused(*targets)
    assert len(found) == 1, found
    assert said in found[0]
    place = found[0].partition("revision")[0]
    assert "targets[" in place


@each_row(
    ("sources", "line"),
    [
        ("[staging,\n      shop-stagin]", 6),
        ('[staging,\n      "x-*"]', 6),
        ("[staging,\n      other]", 6),
        ('[staging,\n      "oth*"]', 6),
        ("[staging,\n      prod]", 6),
        ("other", 5),
    ],
)
def test_a_mistake_points_at_the_line_of_its_entry(sources: str, line: int) -> None:
    other = "name: other, repository: {url: 'https://git.example.com/else.git'}"
    (found,) = refused(following("prod", sources), "name: staging", other)
    assert found.startswith(f"anneal.yaml:{line}: targets[prod].revision.promoted.from"), found


def test_aliases_make_repositories_the_same() -> None:
    other = "name: staging, repository: {url: 'https://mirror.example.com/shop.git', aliases: ['git@git.example.com:shop.git']}"
    settings = configured(other, following("prod", "staging"))
    assert promoters(settings, settings.targets[1]) == ("staging",)


def test_a_circle_of_depends_on_alone_is_one_mistake_of_that() -> None:
    (found,) = refused("name: a, dependsOn: [b]", "name: b, dependsOn: [a]", following("prod", "a", ", dependsOn: [a, b]"))
    assert "dependsOn" in found
    assert "prod" not in found


def test_two_circles_are_two_mistakes() -> None:
    assert len(refused(following("a", "b"), following("b", "a"), following("c", "d"), following("d", "c"))) == 2


def test_what_a_target_writes_stands_above_what_defaults_wrote() -> None:
    text = HEAD.replace("namespaces: [shop]", "namespaces: [shop], revision: {tag: v1}") + "targets:\n"
    settings = parse(text + "  - {name: staging}\n" + f"  - {{{following('prod', 'staging')}}}\n")
    assert [str(each.revision) for each in settings.targets] == ["refs/tags/v1", "refs/heads/main, promoted from staging"]
