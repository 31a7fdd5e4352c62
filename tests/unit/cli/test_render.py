"""YAML that is printed reads as what it was, and without secrets."""

from __future__ import annotations

import yaml

from handler.cli.render import as_yaml
from tests.unit.rows import each_row


@each_row(
    "text", ["", "yes", "No", "1e3", "0x10", "1_000", "012", "null", "~", "a: b", "*x", "- a", "#", "two\nlines\n", " a", "é", "=", "a\tb"]
)
def test_yaml_quotes_text_that_a_decoder_could_take_for_more(text: str) -> None:
    written = as_yaml({"key": text})
    assert yaml.safe_load(written) == {"key": text}
    assert written.startswith(('key: "', "key: |"))


def test_yaml_keeps_plain_words_unquoted_and_writes_no_alias() -> None:
    shared = {"app": "shop"}
    assert as_yaml({"a": shared, "b": shared, "c": ["apps/v1"]}) == "a:\n  app: shop\nb:\n  app: shop\nc:\n  - apps/v1\n"
