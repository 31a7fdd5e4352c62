"""What a field holds once its variables are written out: Flux' own answers where they are one scalar, else the text."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from handler.render.variables.expression import Variables, expanded
from handler.render.variables.expression_budget import ExpressionBudget, ExpressionRefused
from handler.render.variables.flux_scalars import read
from tests.unit.render.variables.flux_golden import FIELDS, OTHERS
from tests.unit.rows import each_row


def held(source: str, value: str) -> Any:
    """Return what a field holds; `...`: it is refused."""
    try:
        return read(source, expanded(source, Variables({"a": value, "b": '"'}), ExpressionBudget()).text)
    except (ExpressionRefused, ValueError):
        return ...


@each_row(("source", "value", "flux"), FIELDS)
def test_a_field_is_what_flux_makes_of_it(source: str, value: str, flux: Any) -> None:
    found = held(source, value)
    assert (found, type(found)) == (flux, type(flux))


@each_row(("source", "value", "flux", "ours"), OTHERS)
def test_what_would_be_no_scalar_or_only_a_part_of_one_is_the_text(source: str, value: str, flux: Any, ours: Any) -> None:
    assert held(source, value) == ours
    assert flux is ... or flux != ours


@settings(max_examples=300, deadline=None)
@given(st.text("${a}:#'\"- \n[{|&*!x1é😀", max_size=20), st.text(max_size=20))
def test_a_value_never_makes_anything_but_one_scalar(source: str, value: str) -> None:
    assert isinstance(held(source, value), str | int | float | bool | None | type(...))
