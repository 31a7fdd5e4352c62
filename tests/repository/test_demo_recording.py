"""The recorded demo: transcript, cast and picture are one run, and name nothing of the machine that it ran on."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from infra.demo import recording, svg
from infra.demo.recording import CAST, PICTURE, TRANSCRIPT

ROOT = Path(__file__).resolve().parents[2]


def test_the_cast_is_the_transcript_with_times_to_be_read() -> None:
    cast = (ROOT / CAST).read_text()
    assert recording.transcript(cast) == (ROOT / TRANSCRIPT).read_text()
    said = list(recording.events(cast))
    assert said[-1].text.startswith("   Everything was as announced")
    assert 25 < said[-1].at < 45


def test_the_picture_is_made_of_the_cast() -> None:
    assert (ROOT / PICTURE).read_text() == svg.render(recording.events((ROOT / CAST).read_text()))


@pytest.mark.parametrize("path", recording.WRITTEN)
def test_nothing_of_the_machine_is_in_a_recording(path: Path) -> None:
    text = (ROOT / path).read_text()
    assert re.findall(r"(?<![\w.~])/(?:root|home|tmp|work|var|opt|Users)/\S*", text) == []
    assert {*re.findall(r"(?:127\.0\.0\.1|localhost):(\d+)", text)} <= {"3000", "8080"}


def test_the_picture_stands_alone_is_small_and_stands_still_where_motion_is_not_wanted() -> None:
    text = (ROOT / PICTURE).read_text()
    ET.fromstring(text)
    assert len(text) < 300_000
    assert re.findall(r"href=|src=|url\(|@import", text) == []
    assert re.search(r"prefers-reduced-motion:reduce\)\{\s*\.page,\.rest\{animation:none\}", text)
    assert re.search(r"^\.page\{transform:translateY\(-\d+px\);animation:", text, re.MULTILINE)
    assert re.search(r"^\.rest\{transform:translateY\(\d+px\);animation:", text, re.MULTILINE)
