"""`anneal run --trigger`: the names are those of the program's table."""

from __future__ import annotations

import click
from click.testing import CliRunner

from handler.app.tables import TRIGGERS, Tables
from handler.cli.commands.deploy import TriggerName
from handler.cli.group import USAGE, anneal
from handler.cli.options import TABLES
from handler.model.run_trigger import RUN_TRIGGERS, RunTrigger
from tests.unit.rows import each_row

OWN = Tables(triggers={**TRIGGERS, "spool": RunTrigger("A file asks.", lambda _targets, _ask, _stop: None)})


def shown(*arguments: str, tables: Tables | None = None, code: int = 0) -> str:
    done = CliRunner().invoke(anneal, ["run", *arguments], obj=tables)
    assert done.exit_code == code, done.output
    return done.output


def test_the_help_has_a_line_for_each() -> None:
    ours = shown("--help")
    assert [name for name in RUN_TRIGGERS if f"\n  {name} " not in ours] == []
    assert "github" not in ours
    assert "A file asks." not in ours
    assert "A file asks." in shown("--help", tables=OWN)


@each_row(
    ("tables", "name", "why"),
    [
        (None, "spool", "spool isn't known; known are oneoff, interval, resource"),
        (None, "github", "github is a webhook, which `anneal serve` hears; known are oneoff, interval, resource"),
        (OWN, "github", "github is a webhook, which `anneal serve` hears; known are oneoff, interval, resource, spool"),
        (Tables(triggers={}), "oneoff", "oneoff isn't known; known are none"),
    ],
)
def test_another_name_is_refused_with_those_that_are_known(tables: Tables | None, name: str, why: str) -> None:
    assert why in shown("--trigger", name, tables=tables, code=USAGE)


def test_names_are_completed() -> None:
    ctx = click.Context(anneal, obj={TABLES: OWN})
    found = TriggerName().shell_complete(ctx, click.Option(["--trigger"]), "s")
    assert [(each.value, each.help) for each in found] == [("spool", "A file asks.")]
