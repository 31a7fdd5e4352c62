"""The command line: `anneal <command>`. It puts rooms together and prints what they found; it decides nothing itself.

    group, options   the commands, each loaded when it is called      commands   what each takes and says by --help
    session          configuration, secrets, handler, at first use    output     lines, tables, JSON; masked, escaped

Exit codes: 0 done, 1 failed, 3 held for approval, 4 waiting, busy, superseded or suspended, 64 usage; `plan --exit-code`: 2 when something
differs.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from handler.app.tables import Tables


def main(tables: Tables | None = None) -> None:
    """Run the command of this process's arguments; ends the process. `tables`: of a program that adds to what Anneal can do."""
    gc.disable()  # until the command's own code runs: what is imported stays
    from handler.cli.group import anneal

    try:
        anneal(prog_name="anneal", obj=tables)
    finally:
        gc.freeze()  # the process ends: nothing is looked through once more
