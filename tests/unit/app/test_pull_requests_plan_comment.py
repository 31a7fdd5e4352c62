"""The comment of a pull request: deletions first, folded, cut to its host's length, and nothing in it does anything."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from handler.app.pull_requests.plan_comment import LINES, PlanOf, status_of, text
from handler.app.pull_requests.target_preview import TargetPreview
from handler.engine.planner.preview import Preview
from handler.model.commit_status import StatusState
from handler.model.errors import Problem
from handler.model.manifest import Manifest
from handler.model.names import Identity
from handler.model.plan import Action, Cause, Change, Due, FieldChange, Gone, Hold, Plan

pytestmark = pytest.mark.slow

HEAD, BASE = "a" * 40, "b" * 40
ABOUT = PlanOf(HEAD, "main", BASE)


def config(name: str) -> Identity:
    return Identity("", "ConfigMap", "shop", name)


def manifest(name: str) -> Manifest:
    return Manifest.of({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"}}, f"deploy/{name}.yaml:3")


def create(name: str) -> Change:
    return Change(Action.CREATE, config(name), manifest=manifest(name))


def update(name: str, *fields: FieldChange) -> Change:
    return Change(Action.UPDATE, config(name), "u", "1", fields=fields, manifest=manifest(name))


def prune(name: str) -> Change:
    return Change(Action.PRUNE, config(name), "u", "1", "no longer declared")


def planned(*changes: Change, name: str = "shop", mine: bool = True, hold: Hold | None = None, judged: bool = False) -> TargetPreview:
    applied = tuple(each for each in changes if each.action is not Action.PRUNE)
    plan = Plan(name, HEAD, (applied,), tuple(each for each in changes if each.action is Action.PRUNE), hold=hold, live_members=9)
    return TargetPreview(name, Preview(plan, judged=judged), mine=frozenset(each.identity for each in changes) if mine else frozenset())


def shown(*previews: TargetPreview, about: PlanOf = ABOUT, longest: int = 65_536, folds: bool = True) -> str:
    return text(about, previews, longest, folds=folds)


def test_a_comment_names_head_branch_and_what_changes_deletions_first() -> None:
    said = shown(planned(create("a"), update("b", FieldChange("data.k", "2", "1")), prune("c")))
    assert said.startswith(f"### Anneal: what merging `{HEAD[:12]}` into `main` would change")
    assert "1 target of 1 reads what changes: **1 to delete, 1 to change, 1 to create**." in said
    lines = [line for line in said.splitlines() if line.startswith(("-", "+", "~", "    "))]
    assert lines == [
        "- delete ConfigMap/shop/c",
        "~ change ConfigMap/shop/b  deploy/b.yaml:3",
        "    data.k: 1 → 2",
        "+ create ConfigMap/shop/a  deploy/a.yaml:3",
    ]
    assert "not judged by the server" in said


def test_what_goes_with_others_or_by_hooks_is_counted_and_stands_with_the_deletions() -> None:
    taken = Gone(config("below"), "u1", Cause.OWNER, config("c"))
    hooks = [Gone(config("settings"), "u2", Cause.HOOK), Gone(config("web"), "u3", Cause.HOOK, returns=True)]
    own = Gone(config("act"), "u4", Cause.REPEATED, counted=False)
    due = tuple(Due("PreSync", str(gone.identity), gone.identity, "run", gone=(gone,)) for gone in (*hooks, own))
    found = planned(update("b", FieldChange("data.k", "2", "1")), replace(prune("c"), takes=(taken,)))
    assert found.plan
    found = replace(found, preview=Preview(replace(found.plan, due=due)), mine=found.mine | {gone.identity for gone in hooks})
    said = shown(found)
    assert "**3 to delete, 1 to recreate, 1 to change**." in said
    assert [line for line in said.splitlines() if line.startswith(("-", "~", "#", ">")) and not line.startswith("###")] == [
        "- delete ConfigMap/shop/below  (its owner goes (ConfigMap/shop/c))",
        "- delete ConfigMap/shop/c",
        "- delete ConfigMap/shop/settings  (a hook takes its place, or deletes it)",
        "- recreate ConfigMap/shop/web  (a hook takes its place, or deletes it)",
        "~ change ConfigMap/shop/b  deploy/b.yaml:3",
        *(f"> PreSync: run ConfigMap/shop/{name}" for name in ("settings", "web", "act")),
    ]
    assert status_of(ABOUT, [found])[1].startswith("3 to delete, 1 to recreate")


def test_what_a_hook_deletes_is_shown_before_what_changes_elsewhere() -> None:
    due = Due("PreSync", "x", config("x"), "run", gone=(Gone(config("x"), "u", Cause.HOOK),))
    hooked = TargetPreview("z", Preview(Plan("z", HEAD, (), due=(due,))))
    said = shown(planned(create("a"), name="a"), hooked)
    assert said.index("#### `z`") < said.index("#### `a`")


def test_mistakes_stand_with_file_and_line() -> None:
    problem = Problem("ConfigMap/shop/a", "no such field", "deploy/a.yaml:3", "remove it")
    said = shown(TargetPreview("shop", problems=(problem,)))
    assert "**can't be planned**" in said
    assert "deploy/a.yaml:3: ConfigMap/shop/a: no such field; remove it" in said


def test_a_diverged_branch_an_edited_comment_and_a_conflict_are_said() -> None:
    about = replace(ABOUT, diverged=True, edited=True, trouble=(Problem("merge into main", "both changed deploy/a.yaml"),))
    said = shown(about=about)
    assert "`main` has moved on since this branch began" in said
    assert "changed or deleted by others" in said
    assert "both changed deploy/a.yaml" in said


def test_the_commit_of_the_branch_that_it_is_planned_against_is_always_named() -> None:
    line = f"At `{BASE[:12]}` of `main`."
    assert shown(planned(create("a"))).splitlines()[2] == line
    assert line in shown(planned(create("a")), about=replace(ABOUT, diverged=True))
    assert "\nAt `" not in shown(about=replace(ABOUT, base="", trouble=(Problem("merge into main", "conflicts"),)))


def test_untouched_targets_are_counted_and_not_listed() -> None:
    said = shown(planned(create("a")), *(TargetPreview(f"other-{number}", untouched=True) for number in range(39)))
    assert "1 target of 40 reads what changes" in said
    assert "39 targets untouched" in said
    assert "other-1" not in said


@pytest.mark.parametrize("folds", [True, False])
def test_a_long_plan_is_folded_where_the_host_folds_and_cut_elsewhere(folds: bool) -> None:
    said = shown(planned(*(create(f"c-{number:03}") for number in range(LINES + 20))), folds=folds)
    assert ("<details>" in said) is folds
    assert ("c-079" in said) is folds
    assert ("… and 20 lines more" in said) is not folds


OTHERS = "# not by this pull request: live differs from the branch already, or what was merged isn't deployed yet"


def refused(number: int) -> tuple[Problem, ...]:
    return tuple(Problem(f"ConfigMap/shop/bad-{each}", "no such field", f"deploy/bad.yaml:{each}") for each in range(number))


def with_refusals(preview: TargetPreview, number: int) -> TargetPreview:
    return replace(preview, problems=refused(number))


def block(said: str) -> list[str]:
    return said.split("```diff\n")[1].split("\n```", maxsplit=1)[0].splitlines()


def test_within_a_target_come_holds_all_deletions_mistakes_and_the_rest_with_a_remark_before_each_group_of_others() -> None:
    target = planned(
        create("a"),
        update("b"),
        prune("mine"),
        prune("theirs"),
        replace(prune("again"), action=Action.RECREATE),
        hold=Hold("h1", ("9 go",), ()),
    )
    target = with_refusals(replace(target, mine=frozenset({config("a"), config("mine")})), 1)
    said = shown(target)
    assert "**would wait for approval**" in said
    assert block(said) == [
        "! 9 go",
        "- delete ConfigMap/shop/mine",
        OTHERS,
        "- delete ConfigMap/shop/theirs",
        "- recreate ConfigMap/shop/again",
        "deploy/bad.yaml:0: ConfigMap/shop/bad-0: no such field",
        "+ create ConfigMap/shop/a  deploy/a.yaml:3",
        OTHERS,
        "~ change ConfigMap/shop/b  deploy/b.yaml:3",
    ]


@pytest.mark.parametrize(("folds", "longest"), [(False, 65_536), (True, 5_000)])
def test_many_mistakes_hide_no_deletion(folds: bool, longest: int) -> None:
    said = shown(with_refusals(planned(*map(prune, "abc"), mine=False), 400), folds=folds, longest=longest)
    assert block(said)[1:4] == [f"- delete ConfigMap/shop/{each}" for each in "abc"]
    assert "more" in block(said)[-1]
    assert "of them" not in block(said)[-1]


@pytest.mark.parametrize("folds", [True, False])
def test_where_deletions_are_cut_the_last_line_says_how_many(folds: bool) -> None:
    target = planned(*(prune(f"c-{number:04}") for number in range(LINES + 3)), *(create(f"d-{number}") for number in range(9)))
    if not folds:
        assert "… and 12 lines more, 3 of them deletions" in shown(target, folds=False)
        return
    assert "<summary>72 lines, 63 of them deletions</summary>" in shown(target)
    last = block(shown(target, longest=1_500))[-1]
    left = LINES + 3 - len(block(shown(target, longest=1_500))) + 1
    assert f"… and {left + 9} lines more, {left} of them deletions" in last


@pytest.mark.parametrize("longest", [32_768, 65_536])
def test_a_comment_is_never_longer_than_its_host_takes_and_keeps_deletions(longest: int) -> None:
    many = [
        planned(*(prune(f"gone-{number}") for number in range(5)), *(create("x" * 200 + str(n)) for n in range(200)), name=f"t-{target}")
        for target in range(25)
    ]
    said = shown(*many, longest=longest)
    assert len(said) <= longest
    assert said.count("- delete ConfigMap/shop/gone-") == 125
    assert "lines more" in said


def big(name: str, *changes: Change, lines: int = 100) -> TargetPreview:
    return planned(*changes, *(create(f"{'x' * 200}{number}") for number in range(lines)), name=name)


def test_targets_stand_by_danger_each_group_in_the_given_order() -> None:
    held = planned(update("a"), name="held", hold=Hold("h", ("9 go",), ()))
    mistaken = TargetPreview("mistaken", problems=refused(1))
    said = shown(planned(name="calm"), mistaken, planned(prune("b"), name="less"), with_refusals(planned(name="refused"), 1), held)
    assert re.findall(r"^#### `(.*)`$", said, re.MULTILINE) == ["less", "held", "mistaken", "refused", "calm"]
    assert "Nothing to change." in said


def test_any_number_of_targets_is_shown_whole_where_there_is_room() -> None:
    said = shown(*(planned(create("a"), prune("b"), name=f"t-{number}") for number in range(150)))
    assert said.count("- delete ConfigMap/shop/b") == said.count("+ create ConfigMap/shop/a") == 150
    assert "no room" not in said


@pytest.mark.parametrize("folds", [True, False])
@pytest.mark.parametrize("longest", [32_767, 65_536])
def test_where_there_is_no_room_for_all_the_deletions_of_all_come_first(longest: int, folds: bool) -> None:
    targets = [big(f"t-{number}", *([prune("b")] if number % 2 else [])) for number in range(150)]
    said = shown(*targets, longest=longest, folds=folds)
    assert longest - 1000 < len(said) <= longest
    assert said.count("- delete ConfigMap/shop/b") == 75
    assert said.index("#### `t-1`") < said.index("#### `t-3`")
    assert "- `t-148`: 100 to create" in said


def test_a_target_that_is_not_shown_is_named_with_its_counts_its_hold_and_its_mistakes() -> None:
    field = FieldChange("data.k", "x" * 400, "y" * 400)
    first = [planned(*(replace(update(f"u-{number}", field), action=Action.RECREATE) for number in range(40)), name="first")]
    cart = planned(prune("a"), prune("b"), update("c", field), name="cart", hold=Hold("h", ("z" * 400,), ()))
    long = (Problem("x" * 500, "no such field"),) * 2
    lost, web = TargetPreview("lost", problems=long), replace(planned(create("a"), name="web"), problems=long)
    calm = replace(planned(name="calm"), notes=("n" * 500,))
    said = shown(*first, cart, lost, web, calm, longest=6_000)
    assert len(said) <= 6_000
    assert said.endswith(
        "- `cart`: 2 to delete, 1 to change; would wait for approval\n"
        "- `lost`: can't be planned\n"
        "- `web`: 1 to create; a run would refuse 2 objects\n"
        "- `calm`: nothing to change"
    )


def test_of_more_targets_than_can_be_named_the_last_are_counted_with_their_deletions() -> None:
    gone = [prune(f"gone-{number}") for number in range(3)]
    said = shown(*(big(f"{'n' * 51}-{number:04}", *gone, lines=2) for number in range(2_000)))
    assert len(said) <= 65_536
    whole, named = said.count("#### "), said.count("\n- `n")
    assert min(whole, named) > 50
    left = 2_000 - whole - named
    assert said.endswith(f"- … and {left} targets more with {3 * left} deletions")


@pytest.mark.parametrize("folds", [True, False])
@pytest.mark.parametrize("longest", [2_500, 6_000, 32_767, 65_536])
@pytest.mark.parametrize("targets", [1, 7, 60])
def test_a_comment_fits_whatever_comes(longest: int, targets: int, folds: bool) -> None:
    ticks = FieldChange("data.k", "`" * 300, "\u202e" * 40 + "x" * 300)
    trouble = tuple(Problem(f"merge into main {number}", "`" * 400) for number in range(targets))
    about = PlanOf(HEAD, "b" * 255, BASE, diverged=True, edited=True, trouble=trouble)
    made = [big(f"t-{number}", prune("a"), update("u", *[ticks] * 40), lines=number % 70) for number in range(targets)]
    for parts in (made, [with_refusals(each, 80) for each in made], [planned(name="calm"), *made[1:]]):
        assert len(shown(*parts, longest=longest, folds=folds)) <= longest
        assert len(shown(*parts, about=about, longest=longest, folds=folds)) <= longest


def test_the_status_says_what_fails_what_would_wait_and_what_changes() -> None:
    fine, held = planned(create("a"), prune("b")), planned(prune("b"), name="cart", hold=Hold("h", ("all go",), ()))
    assert status_of(ABOUT, [fine]) == (StatusState.SUCCESS, "1 to delete, 1 to create")
    assert status_of(ABOUT, [fine, held]) == (StatusState.SUCCESS, "2 to delete, 1 to create; cart would wait for approval")
    assert status_of(ABOUT, [TargetPreview("shop", untouched=True)]) == (StatusState.SUCCESS, "changes nothing")
    wrong = TargetPreview("shop", problems=(Problem("ConfigMap/a", "no such field", "a.yaml:3", "remove it"),))
    assert status_of(ABOUT, [fine, wrong]) == (StatusState.FAILURE, "shop: a.yaml:3: ConfigMap/a: no such field")
    assert status_of(replace(ABOUT, trouble=(Problem("merge into main", "conflicts"),)), [])[0] == StatusState.FAILURE


def test_one_authors_many_backticks_hide_no_other_targets_plan() -> None:
    trouble = TargetPreview("web", problems=(Problem("a.yaml", "`" * 31_000),))
    said = shown(trouble, planned(prune("c")))
    assert "- delete ConfigMap/shop/c" in said
    assert len(said) < 3000


def test_nothing_of_others_begins_a_line_or_leaves_its_block() -> None:
    evil = (
        "x”\n    kubectl delete ns prod\n```\n</details>\n/merge\n[x](http://evil)\n@all <b>\n# done\u2028- delete\0\x1b[31m\u202e\n`````"
    )
    change = replace(update("a", FieldChange(evil, evil, evil)), reason=evil)
    preview = planned(change, hold=Hold("h", (evil,), ()))
    refused = TargetPreview("bank", problems=(Problem(evil, evil, evil),))
    said = shown(preview, refused, about=replace(ABOUT, trouble=(Problem("shop", evil),)))
    assert "delete ns prod" in said
    assert re.findall(r"^(`{3,})(?:diff)?$", said, re.MULTILINE) == ["`" * 6] * 6
    outside = "".join(re.split(r"(?ms)^(`{6})diff\n.*?^\1$", said)[::2])
    assert not any(text in outside for text in ("kubectl", "@all", "<b>", "</details>", "/merge", "evil"))
    assert not [line for line in said.splitlines() if line.lstrip().startswith(("kubectl", "@", "# done", "/", "- delete"))]
    assert not set("\0\x1b\u202e\u2028") & set(said)
