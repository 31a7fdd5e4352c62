"""SECURITY.md says of every key of a record, a Lease and a heartbeat what believing it can do."""

from __future__ import annotations

import re

from handler.state import configmap, heartbeat, lease_record
from infra.house.sources import ROOT

PAGE = (ROOT / "SECURITY.md").read_text()
LEASE = ("holderIdentity", "leaseDurationSeconds", "leaseTransitions", "renewTime", lease_record.REQUESTED)
BEAT = (heartbeat._SERVERS, heartbeat._TARGETS, heartbeat._HEALTH, heartbeat._SINCE)
MARKS = (configmap.ID, configmap.TARGET, configmap.INSTALLATION, configmap.RENAMED_FROM)
NOTES = (configmap.TOOLING, configmap.KINDS, configmap.NAMESPACES, configmap.SUMMARY, configmap.INSTANCE)


def test_every_key_has_a_row() -> None:
    table = PAGE.partition("## What a record says")[2].partition("### ")[0]
    said = [name for row in re.findall(r"^\| (.+?) \|", table, re.MULTILINE) for name in re.findall(r"`([^`]+)`", row)]
    keys = [*configmap._PLAIN, *(f"{key}.json" for key in configmap._KEYS)]
    assert sorted(said) == sorted([*keys, *(name.rpartition("/")[2] for name in (*LEASE, *BEAT, *MARKS, *NOTES))])
