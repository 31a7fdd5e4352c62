"""`anneal completion`: the shell code that completes commands, options and target names (click's own mechanism)."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from handler.cli import reports
from handler.cli.session import Session

_SHELLS = {
    "bash": 'eval "$(anneal completion bash)" in ~/.bashrc',
    "zsh": 'eval "$(anneal completion zsh)" in ~/.zshrc, after compinit',
    "fish": "anneal completion fish > ~/.config/fish/completions/anneal.fish",
}


def completion(session: Session, shell: str) -> int:
    """Print what makes SHELL complete commands, options and targets."""
    made = get_completion_class(shell)
    root = click.get_current_context().find_root().command
    assert made is not None  # noqa: S101 - click brings these three
    source = made(root, {}, "anneal", "_ANNEAL_COMPLETE").source()
    if session.output.as_json:
        session.output.document({"shell": shell, "install": _SHELLS[shell], "source": source})
    else:
        session.output.text(source + "\n")
    return reports.DONE_CODE
