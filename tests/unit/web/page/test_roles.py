"""Names and groups become roles by the operator's table, and by nothing else."""

from __future__ import annotations

from handler.config.page_settings import RoleBinding
from handler.web.page.roles import PageSession, RoleGrant, Visitor, grants, known_groups
from tests.unit.rows import each_row

TABLE = (
    RoleBinding("operator", ("platform",), ("root@example.com",), ("*",), ("infra",)),
    RoleBinding("viewer", ("developers",), (), ("shop-*", "docs"), ("*",)),
)


def visitor(name: str = "", *groups: str) -> Visitor:
    stay = PageSession(name, groups, "oidc", "s", 0.0)
    return Visitor(stay, grants(TABLE, name, groups), 1.0)


@each_row(
    ("name", "groups", "rows"),
    [
        ("ada@example.com", ("platform",), (0,)),
        ("root@example.com", (), (0,)),
        ("bob@example.com", ("developers", "others"), (1,)),
        ("both@example.com", ("developers", "platform"), (0, 1)),
        ("eve@example.com", ("others",), ()),
        ("platform", ("root@example.com",), ()),  # a group is no user, a user no group
        ("Root@example.com", ("Platform",), ()),
        ("", (), ()),
    ],
)
def test_rows_count_for_users_and_groups_as_they_are_written(name: str, groups: tuple[str, ...], rows: tuple[int, ...]) -> None:
    assert grants(TABLE, name, groups) == tuple(RoleGrant(TABLE[row].role, TABLE[row].targets, TABLE[row].logs) for row in rows)


def test_a_viewer_sees_what_its_globs_match_and_acts_on_nothing() -> None:
    bob = visitor("bob", "developers")
    assert [name for name in ("shop-prod", "docs", "shop", "infra", "docs2") if bob.sees(name)] == ["shop-prod", "docs"]
    assert not any(bob.operates(name) for name in ("shop-prod", "docs", "infra"))


def test_logs_are_a_permission_of_their_own_within_the_row_s_targets() -> None:
    bob, ada = visitor("bob", "developers"), visitor("ada", "platform")
    assert [name for name in ("shop-prod", "infra") if bob.reads_logs(name)] == ["shop-prod"]
    assert [name for name in ("shop-prod", "infra") if ada.reads_logs(name)] == ["infra"]
    assert ada.operates("shop-prod")


def test_who_is_in_no_row_may_do_nothing() -> None:
    eve = visitor("eve", "others")
    assert [may("docs") for may in (eve.sees, eve.operates, eve.reads_logs)] == [False] * 3


@each_row("glob", ["?", "[!p]*", "[*]", "**"])
def test_who_sees_everything_is_in_a_row_of_everything(glob: str) -> None:
    some = Visitor(PageSession("ada", (), "oidc", "s", 0.0), (RoleGrant("viewer", (glob, "shop-*")),), 1.0)
    assert not some.sees_everything
    assert visitor("ada", "platform").sees_everything
    assert not visitor("eve").sees_everything


def test_only_groups_of_the_table_are_kept() -> None:
    assert known_groups(TABLE, ["x", "platform", "platform", *map(str, range(1000))]) == ("platform",)
