"""What the real helm says of broken charts, as Anneal says it: file:line of the source, helm's own words, no value that may be secret."""

from __future__ import annotations

import pytest

from handler.model.errors import AnnealError, ManifestInvalid, RenderFailed
from handler.render import Sandbox
from tests.rooms.render.helm_releases import ECHO, chart, rendered
from tests.rooms.render.test_helm_errors import X


@pytest.mark.parametrize(
    ("template", "error"),
    [
        ('a: {{ repeat 2000000000 "x" }}', RenderFailed),
        ("a: " + "[" * 50_000, AnnealError),
        (
            "a: &a [x]\n"
            + "".join(
                f"{name}: &{name} [*{last}, *{last}]\n"
                for last, name in zip("abcdefghijklmnopqrstuvwx", "bcdefghijklmnopqrstuvwxy", strict=True)
            ),
            ManifestInvalid,
        ),
        ('{{ range until 20000 }}\n---\nkind: {{ repeat 6000 "x" }}\n{{ end }}', AnnealError),
    ],
)
def test_bombs_end_the_render_and_nothing_else(template: str, error: type[AnnealError], sandbox: Sandbox) -> None:
    with pytest.raises(error):
        rendered(sandbox, chart({X: template}))
    assert rendered(sandbox, chart({X: ECHO})).manifests
