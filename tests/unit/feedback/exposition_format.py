"""Prometheus' text format, read back by its own parser."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families


def parsed(text: str) -> dict[tuple[str, tuple[str, ...]], float]:
    """Return each sample by its name and the values of its labels, sorted by label."""
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    found = {(sample.name, tuple(sample.labels[key] for key in sorted(sample.labels))): sample.value for sample in samples}
    assert len(found) == len(samples), "no sample stands twice"
    return found
