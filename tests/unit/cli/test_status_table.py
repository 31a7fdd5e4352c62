"""The table of all targets: what each cell says, what fits a terminal and in which order columns go, and what to do about each trouble."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from handler.app.retired import RetiredTarget
from handler.app.target_row import Level, NewestCommit, TargetRow
from handler.cli.follow_up_commands import GivenFlags, reaching
from handler.cli.next_step import next_step, server_text
from handler.cli.status_table import HEADS, cells, facts, hints, retired_facts, retired_lines, server_facts, table
from handler.config.git_settings import Repository, SecretRef
from handler.config.settings import Cluster, Eks, Target
from handler.model.advice import advice
from handler.model.errors import ClusterUnavailable, GitUnavailable, StateInvalid
from handler.model.tree import CommitInfo
from handler.state.heartbeat import UNREAD, Pulse, Server
from handler.state.record import HeldPlan, Pin, RunStatus, State, TargetHealth
from handler.state.record_format import stamp
from handler.state.summary import Summary
from tests.unit.rows import each_row
from tests.unit.state.samples import blank, sha

NOW = 1_900_000_000.0
SUBJECT = "Everything that the shop of the north needs for the summer"
WELL = Summary(sha("a"), phase="applied", health="healthy", subject=SUBJECT, applied=stamp(NOW - 7300))
RUNS = {"one": Server("one", "1.2.3", NOW - 30)}
SERVED = Pulse(NOW, servers=RUNS, targets=dict.fromkeys(("shop", "bank", "cellar", "attic"), ("one", NOW - 60)))
STOPPED = replace(SERVED, servers={"one": Server("one", "1.2.3", NOW - 7200)}, targets={"shop": ("one", NOW - 7260)})
AHEAD = NewestCommit(sha("b"), CommitInfo(sha("b"), "Newer", "ann", int(NOW - 120)))


def target(name: str = "shop", **about: Any) -> Target:
    return Target(name, Repository("https://git.example.com/acme/shop.git"), ("shop",), **about)


def row(name: str = "shop", summary: Summary = WELL, pulse: Pulse = SERVED, **about: Any) -> TargetRow:
    return TargetRow(target(name), NOW, recorded=True, summary=summary, pulse=pulse, **about)


def shown(*rows: TargetRow, width: int | None = 80, wide: bool = False) -> list[str]:
    return [text for text, _ in table(rows, width=width, wide=wide)]


def test_a_program_finds_every_column_in_its_place_and_no_blank_in_a_cell_but_the_last() -> None:
    failed = Summary(phase="failed", health="degraded", next_try=stamp(NOW + 15), drifted=3, held=True)
    lines = shown(row(newest=AHEAD), row("bank", failed), width=None)
    assert lines[0].split() == list(HEADS)
    assert lines[1].split(maxsplit=11) == ["shop", "applied", "healthy", "aaaaaaaa", "2h", "bbbbbbbb", "2m", "-", "-", "-", "1m", SUBJECT]
    assert lines[2].split() == ["bank", "failed", "degraded", "-", "-", "-", "-", "3", "yes", "15s", "1m", "-"]
    assert len({line.index(word) for line, word in zip(lines, ("SUBJECT", SUBJECT, "-"), strict=True) if word != "-"}) == 1, "columns"


@each_row("width", [200, 120, 80, 60, 40, 20])
def test_no_line_is_longer_than_the_terminal_is_wide(width: int) -> None:
    busy = replace(WELL, next_try=stamp(NOW + 15), drifted=3, held=True, subject="発注書の更新を行い、在庫の数を直す" * 3)
    lines = shown(row("a-target-whose-name-says-all", busy, newest=AHEAD), row(newest=AHEAD), width=width)
    assert all(sum(2 if ord(char) > 0x2E80 else 1 for char in line) <= width for line in lines), lines


def test_narrow_tables_drop_empty_columns_then_cut_the_subject_then_drop_columns() -> None:
    assert shown(row())[0].split() == ["TARGET", "PHASE", "HEALTH", "COMMIT", "AGE", "LOOKED", "SUBJECT"]
    assert shown(row())[1].endswith("…")
    busy = replace(WELL, next_try=stamp(NOW + 15), drifted=3, held=True)
    assert shown(row(summary=busy, newest=AHEAD), width=90)[0].split() == [head for head in HEADS if head != "LOOKED"]
    assert shown(row(summary=busy, newest=AHEAD), width=60)[0].split()[:6] == ["TARGET", "PHASE", "HEALTH", "COMMIT", "HEAD", "SINCE"]
    assert shown(row(summary=busy, newest=AHEAD), width=30)[0].split() == ["TARGET", "PHASE", "HEALTH"]


def test_wide_output_isnt_cut_to_the_terminal() -> None:
    (heads, line) = shown(row(), width=40, wide=True)
    assert heads.split()[-5:] == ["PHASE-SINCE", "SERVER", "CLUSTER", "REVISION", "SUBJECT"]
    assert line.endswith(SUBJECT)


@each_row(
    ("about", "level"),
    [
        ({}, Level.WELL),
        ({"summary": replace(WELL, phase="failed")}, Level.FAILED),
        ({"summary": replace(WELL, phase="pruning")}, Level.FAILED),
        ({"summary": replace(WELL, health="degraded")}, Level.FAILED),
        ({"summary": replace(WELL, held=True, phase="held")}, Level.HELD),
        ({"pulse": STOPPED}, Level.UNSERVED),
        ({"pulse": Pulse(NOW)}, Level.WELL),
        ({"pulse": Pulse(NOW), "newest": AHEAD}, Level.UNSERVED),
        ({"pulse": Pulse(NOW), "summary": replace(WELL, next_try=stamp(NOW))}, Level.UNSERVED),
        ({"pulse": UNREAD}, Level.WELL),
        ({"pulse": replace(SERVED, targets={}), "summary": WELL}, Level.UNSERVED),
        ({"summary": replace(WELL, suspended=True), "pulse": STOPPED}, Level.MOVING),
        ({"summary": replace(WELL, suspended=True, suspended_until=stamp(NOW)), "pulse": STOPPED}, Level.UNSERVED),
        ({"summary": replace(WELL, drifted=1)}, Level.OFF),
        ({"summary": replace(WELL, health="unknown")}, Level.OFF),
        ({"summary": replace(WELL, pin=sha("a")), "state": blank(pin=Pin(sha("a"), automatic=True))}, Level.OFF),
        ({"newest": NewestCommit(trouble=GitUnavailable.of("url", "gone"))}, Level.UNFOLLOWED),
        ({"newest": AHEAD}, Level.MOVING),
        ({"newest": AHEAD, "summary": replace(WELL, pin=sha("a"))}, Level.MOVING),
        ({"summary": replace(WELL, health="progressing")}, Level.MOVING),
        ({"trouble": StateInvalid.of("x", "y")}, Level.UNREAD),
    ],
)
def test_the_level_of_a_target(about: dict[str, Any], level: Level) -> None:
    assert row(**about).level is level


def test_a_target_that_never_ran_and_one_that_wasnt_read_say_so() -> None:
    lost = replace(row(), recorded=False, members=0)
    assert (lost.phase, lost.level, replace(lost, members=None).phase) == ("never-ran", Level.OFF, "no-record")
    assert (replace(row(), recorded=None).phase, replace(row(), recorded=None).level) == ("asking", Level.UNREAD)
    assert replace(row(), recorded=None, trouble=ClusterUnavailable.of("c", "d")).phase == "unknown"


def test_no_time_of_a_next_try_is_told_where_no_server_would_keep_it() -> None:
    due = replace(WELL, next_try=stamp(NOW + 15))
    assert [cells(row(summary=due, pulse=pulse))["NEXT"] for pulse in (SERVED, STOPPED, UNREAD)] == ["15s", "-", "15s"]
    assert cells(row(summary=replace(WELL, next_try=stamp(NOW - 15))))["NEXT"] == "now"


# --- what to do
def whole(state: State, **about: Any) -> TargetRow:
    return row(summary=Summary.of(state), state=state, whole=True, **about)


def told(*rows: TargetRow, flags: tuple[str, ...] = ()) -> list[str]:
    return [text for text, _ in hints(rows, GivenFlags(flags, flags))]


def test_a_cluster_that_doesnt_answer_is_told_of_once_with_what_asks_it() -> None:
    away, silent = Cluster(SecretRef(file="/etc/far away"), context="west"), ClusterUnavailable.of("x", "hasn't answered within 4 s")
    far = [TargetRow(target(f"far-{number}", cluster=away), NOW, trouble=silent) for number in range(9)]
    assert told(*far, row()) == [
        "cluster kubeconfig /etc/far away, context west (9 targets: far-0, far-1, far-2, far-3, far-4, …): x: hasn't answered within 4 s",
        "    kubectl --kubeconfig '/etc/far away' --context west get --raw /readyz --request-timeout 5s",
    ]
    assert told(*far, flags=("--context", "east"))[1] == "    kubectl --context east get --raw /readyz --request-timeout 5s"
    assert reaching(Cluster(eks=Eks("prod", "eu-west-1")), ()) == "aws eks describe-cluster --name prod --region eu-west-1"


def test_a_git_host_that_doesnt_answer_is_told_of_once_and_hides_no_trouble() -> None:
    mute = NewestCommit(trouble=GitUnavailable.of("https://git.example.com/acme/shop.git", "its host refuses connections"))
    failed = whole(
        replace(blank(), target="shop", status=RunStatus("failed", message="deploy/a.yaml:1: no\nmore", who="author")), newest=mute
    )
    found = told(failed, row("bank", newest=mute))
    assert found[0].startswith("git host git.example.com (2 targets: shop, bank): https://git.example.com/acme/shop.git: its host refuses")
    assert found[1:] == [
        "    git ls-remote https://git.example.com/acme/shop.git",
        "shop: “deploy/a.yaml:1: no”; fix the commit, and push",
        "    anneal status shop",
    ]


def test_a_failure_by_the_git_host_has_one_hint() -> None:
    mute = NewestCommit(trouble=GitUnavailable.of("https://git.example.com/acme/shop.git", "its host refuses connections"))
    failed = whole(blank(commit=sha(), status=RunStatus("failed", message=str(mute.trouble), who="nobody")), newest=mute)
    assert [line for line in told(failed) if line.startswith("    ")] == ["    git ls-remote https://git.example.com/acme/shop.git"]
    assert next_step(failed).command == "git ls-remote https://git.example.com/acme/shop.git", "the page says the same"


def test_each_trouble_has_its_cause_and_the_command() -> None:
    held = HeldPlan("h1", ("2 of 3 live objects would be deleted",), (("prune", "ConfigMap/shop/a", "u"),), sha(), sha(), sha(), stamp(NOW))
    health = TargetHealth("degraded", stamp(NOW), stamp(NOW), ("Deployment/shop/api: crashes",), ())
    well = TargetHealth("healthy", stamp(NOW), stamp(NOW), (), ())
    assert told(whole(blank(commit=sha(), held=held, health=well))) == [
        "shop: “2 of 3 live objects would be deleted”; 1 deletion waits for approval; to allow exactly it:",
        "    anneal approve shop h1",
    ]
    assert told(whole(blank(commit=sha(), health=health))) == [
        "shop: “Deployment/shop/api: crashes”; it is degraded; to see what its containers wrote:",
        "    anneal status shop --logs",
    ]
    assert told(row(summary=replace(WELL, phase="failed", health="healthy"))) == ["shop: failed, healthy", "    anneal status shop"]


def test_suspended_and_pinned_targets_have_their_resume_and_unpin_commands() -> None:
    paused, pinned = (row(name, replace(WELL, **about)) for name, about in (("bank", {"suspended": True}), ("shop", {"pin": sha("a")})))
    assert told(paused, pinned, row(), flags=("-c", "x.yaml")) == [
        "suspended (1 target: bank); to go on: `anneal -c x.yaml resume bank`",
        "pinned (1 target: shop); to go on: `anneal -c x.yaml unpin shop`",
    ]
    assert told(replace(paused, target=replace(paused.target, suspend=True))) == [], "anneal.yaml says so, and only there it goes"


def test_hints_are_limited_to_the_first_targets_in_trouble() -> None:
    bad = [row(f"bad-{number}", replace(WELL, phase="failed")) for number in range(30)]
    assert told(*bad)[-1] == "and 10 more in trouble: anneal status TARGET"


# --- whether a server works
@each_row(
    ("pulse", "text"),
    [
        (SERVED, "one (1.2.3) looked 1 min ago"),
        (replace(SERVED, targets={"shop": ("one", 0.0)}), "one (1.2.3) hasn't looked yet"),
        (STOPPED, "no server has looked after it for 2 h"),
        (replace(STOPPED, targets={}), "no server has looked after it for 2 h"),
        (replace(SERVED, targets={}), "no running server looks after it: one has another configuration"),
        (Pulse(NOW), "no server has ever looked after it"),
        (UNREAD, "whether a server runs isn't known: its heartbeat may not be read"),
    ],
)
def test_which_server_looks_after_a_target_is_said_or_that_none_does(pulse: Pulse, text: str) -> None:
    assert server_text(TargetRow(target(), NOW, pulse=pulse)) == text
    instance = TargetRow(replace(target(), name="shop.web.main"), NOW, pulse=pulse)
    assert server_text(instance) == text, "of an instance that of its template"
    assert server_facts(instance) == server_facts(TargetRow(target(), NOW, pulse=pulse))


def test_nothing_to_do_is_never_said_while_no_server_works() -> None:
    health = TargetHealth("healthy", stamp(NOW), stamp(NOW), (), ())
    state = blank(commit=sha("a"), health=health, status=RunStatus("applied"))

    def advice(pulse: Pulse, newest: NewestCommit | None = None) -> tuple[str, str, bool]:
        found = next_step(TargetRow(target(), NOW, state=state, pulse=pulse, newest=newest))
        return found.text, found.command, found.urgent

    ways = "start `anneal serve` or `anneal run --trigger interval`, or now:"
    assert advice(SERVED) == ("nothing to do", "", False)
    assert advice(UNREAD) == ("nothing to do", "", False)
    assert advice(SERVED, AHEAD) == ("git is at bbbbbbbbbbbb, which the next look applies, or now:", "anneal apply shop", False)
    assert advice(STOPPED) == (f"nothing to do now, and no server has looked after it for 2 h; {ways}", "anneal apply shop", True)
    assert advice(Pulse(NOW)) == (f"nothing to do now, and no server has ever looked after it; {ways}", "anneal apply shop", False)
    assert advice(STOPPED, AHEAD)[0].startswith("git is at bbbbbbbbbbbb, and no server has looked after it for 2 h;")


@each_row(
    ("status", "served", "alone"),
    [
        (
            RunStatus("failed", who="nobody", next_try=stamp(NOW + 15)),
            "it is tried again in 15 s",
            "no server runs that would try it again",
        ),
        (
            RunStatus("failed", who="author"),
            "fix the commit as said below, and push",
            "fix the commit as said below, and push; no server runs, so then:",
        ),
        (RunStatus("waiting", next_try=stamp(NOW + 15)), "looked at again in 15 s", "no server runs that would look again"),
    ],
)
def test_retries_are_promised_only_while_a_server_runs(status: RunStatus, served: str, alone: str) -> None:
    state = blank(commit=sha(), status=status)
    for pulse, said in ((SERVED, served), (STOPPED, alone)):
        found = next_step(TargetRow(target(), NOW, state=state, pulse=pulse))
        assert said in found.text
        assert found.command or pulse is SERVED


def test_the_json_row_has_the_facts_of_the_table() -> None:
    found = facts(row(newest=AHEAD, pulse=STOPPED))
    assert (found["target"], found["trouble"], found["level"], found["commit"]) == ("shop", True, "unserved", sha("a"))
    assert found["head"] == {"commit": sha("b"), "subject": "Newer", "time": stamp(NOW - 120), "differs": True, "error": None}
    seen, looked = stamp(NOW - 7200), stamp(NOW - 7260)
    assert found["server"] == {"runs": False, "name": "", "version": "", "looked": looked, "lastSeen": seen}


def gone(name: str, template: str = "", *, stranger: bool = False) -> RetiredTarget:
    of_all = advice("anneal retire {} --prune --dry-run", template) if template else ""
    ends = advice("anneal retire {} --prune --dry-run", name)
    return RetiredTarget(name, "anneal-system", "prod", "a" * 40, "", 0, "", stranger, "", ends, template, of_all)


def test_what_is_left_of_a_template_has_one_hint_with_its_own_record() -> None:
    names = [f"grafana.ns.{name}" for name in "abcd"]
    found = [gone("bank"), gone("grafana"), *(gone(name, "grafana") for name in names)]
    given = GivenFlags(("-c", "fleet.yaml"))
    lines = [text for text, _ in retired_lines(found, given)]
    assert len(lines) == 4
    shown = "grafana.ns.a, grafana.ns.b, grafana.ns.c and more; 4 records in namespace anneal-system of cluster prod"
    assert (
        lines[0]
        == f"retired: the instances of grafana ({shown}): what they have stays; to see what --prune deletes (--keep lets go of it):"
    )
    assert lines[1].strip() == "anneal -c fleet.yaml retire grafana --prune --dry-run"
    assert lines[3].strip() == "anneal -c fleet.yaml retire bank --prune --dry-run"
    facts_of_one = retired_facts(found[2], given)
    assert (facts_of_one["template"], facts_of_one["nextOfAll"]) == ("grafana", "anneal -c fleet.yaml retire grafana --prune --dry-run")


def test_what_may_be_another_configurations_is_only_shown_and_a_name_is_advised_once() -> None:
    found = [gone("bank", stranger=True), gone("x.ns.a", "x", stranger=True), gone("store", stranger=True)]
    lines = [text.strip() for text, _ in retired_lines(found, GivenFlags(("-c", "fleet.yaml")))]
    commands = [line for line in lines if line.startswith("anneal ")]
    assert commands == [f"anneal -c fleet.yaml retire {name} --prune --dry-run" for name in ("x", "bank", "store")]
    assert sum("`installationFrom: default`" in line for line in lines) == 1
