"""The pictures of README are what the code makes: the demo's, and its transcript, of one recording; the flow's of one layout."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from infra.demo import recording, svg
from infra.demo.recording import CAST, PICTURE, TRANSCRIPT
from infra.house.sources import ROOT
from infra.pages import flow


def test_transcript_and_picture_are_made_of_the_cast() -> None:
    cast, picture = (ROOT / CAST).read_text(), (ROOT / PICTURE).read_text()
    assert recording.transcript(cast) == (ROOT / TRANSCRIPT).read_text()
    assert picture == svg.render(recording.events(cast))
    ET.fromstring(picture)
    assert [*recording.events(cast)][-1].text.startswith("   Everything was as announced")


def test_the_flow_is_drawn_anew_when_its_code_changes() -> None:
    drawn = {name: (flow.IMAGES / f"flow-{name}.svg").read_text() for name in flow.THEMES}
    assert drawn == {name: flow.svg(theme) for name, theme in flow.THEMES.items()}, "scripts/pages draws it anew"
