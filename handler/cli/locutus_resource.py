"""`anneal locutus --trigger=resource`: Locutus' file of a resource trigger -> the trigger of a target.

    mainResource: grafana
    resources:
    - {name: grafana, kind: Grafana, apiVersion: monitoring.coreos.com/v1}

Law: it is read as the same is read in anneal.yaml: every mistake at once, with its line.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from handler.config.decode import BAD, Decoder
from handler.config.trigger_settings import ResourceTrigger, TriggerSettings
from handler.config.yaml_nodes import ConfigMistakes, compose

_FLAG = "--trigger.resource.config"


def read_trigger(file: Path, *, write_status: bool) -> TriggerSettings:
    """Return the trigger that a file describes. Raises click.UsageError: there is no such file; ConfigInvalid with every mistake in it."""
    try:
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{_FLAG} {file}: {getattr(error, 'strerror', None) or 'is no text'}") from None
    mistakes = ConfigMistakes(str(file))
    found = Decoder(mistakes, {}).mapping(compose(text, str(file)), ResourceTrigger, "")
    mistakes.settle()
    assert found is not BAD  # noqa: S101 - else there was a mistake
    return TriggerSettings(replace(found, write_status=write_status, across_namespaces=True, adopt_unowned=True))
