"""Command lines that texts name, parsed as `anneal` parses them."""

from __future__ import annotations

import shlex

import click

from handler.cli.group import anneal


def parsed(line: str) -> click.Context:
    """Parse a command line as the shell's `anneal` would, without running it. Raises click.UsageError."""
    group = anneal.make_context("anneal", shlex.split(line))
    called, command, rest = anneal.resolve_command(group, [*group._protected_args, *group.args])
    assert command is not None
    return command.make_context(called, rest, parent=group)
