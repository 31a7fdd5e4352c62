"""The command line: `anneal <command>`. It puts rooms together and prints what they found; it decides nothing itself.

    group      the commands, each loaded when it is called       options    what all of them take
    session    configuration, secrets, handler: made when asked  printing   lines, tables, JSON; masked, escaped
    reports    a Result, a Plan, a Problem for people and as JSON

Exit codes: 0 done, 1 failed, 3 held for approval, 4 busy, superseded or suspended, 64 usage; `plan --exit-code`: 2 when something differs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from handler.tables import Tables


def main(tables: Tables | None = None) -> None:
    """Run the command of this process's arguments; ends the process. `tables`: of a program that adds to what Anneal can do."""
    from handler.cli.group import anneal  # noqa: PLC0415 - click is loaded by who calls it, not by who imports a room

    anneal(prog_name="anneal", obj=tables)
