"""Pieces of a program's output: what was read before isn't read again, and nothing is taken for another."""

from __future__ import annotations

import pytest

from handler.model.errors import Problem
from handler.model.manifest import Manifest
from handler.render.frames import encode, encode_note
from handler.render.helm.pieces import Piece, assembled, decode_output, digests
from handler.render.objects import twice_declared

NEW = Piece.of("a.yaml", b"text", {}, ())


def made(name: str) -> Manifest:
    return Manifest.of({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}, "a.yaml:1")


def test_a_piece_is_its_bytes_its_place_and_what_decides_its_lines() -> None:
    others = [Piece.of("b.yaml", b"text", {}, ()), Piece.of("a.yaml", b"texts", {}, ()), Piece.of("a.yaml", b"text", {"A": 2}, ())]
    assert len({NEW.digest, *(each.digest for each in others)}) == 4
    assert Piece.of("a.yaml", b"text", {}, ()) == NEW
    assert not Piece.of("a.yaml", b"text", {}, {NEW.digest}).new


def test_rows_cross_the_pipe_whole() -> None:
    known, problem = Piece(NEW.place, NEW.digest, False), Problem("a", "b")
    frames = [NEW.encode(), known.encode(), encode(made("a")), encode(problem), encode_note("a note")]
    assert [*map(decode_output, frames)] == [NEW, known, made("a"), problem, "a note"]


def test_objects_of_new_and_known_pieces_stand_in_their_order() -> None:
    old = Piece.of("b.yaml", b"old", {}, ())
    known = {(old.place, old.digest): (made("b"), made("c"))}
    output = assembled([NEW, made("a"), Piece(old.place, old.digest, False), "a note", Problem("x", "y")], known)
    assert [each.identity.name for each in output.manifests] == ["a", "b", "c"]
    assert output.files == {("a.yaml", NEW.digest): (made("a"),), **known}
    assert (output.notes, output.problems) == (("a note",), (Problem("x", "y"),))
    assert digests({**known, ("deploy/a.yaml", "0" * 40): ()}) == [old.digest]


def test_an_object_of_two_pieces_is_declared_twice() -> None:
    output = assembled([NEW, made("a"), Piece.of("b.yaml", b"", {}, ()), Manifest.of(made("a").body(), "b.yaml:1")], {})
    [problem] = twice_declared(output.manifests)
    assert problem == Problem("ConfigMap/a", "declared twice, first at a.yaml:1", "b.yaml:1")


def test_a_piece_that_is_printed_twice_declares_its_objects_twice() -> None:
    twice = Problem("ConfigMap/a", "declared twice, first at a.yaml:1", "a.yaml:1")
    assert assembled([NEW, made("a"), NEW, made("a")], {}).problems == (twice,)
    again = Piece(NEW.place, NEW.digest, False)
    assert assembled([again, again], {(NEW.place, NEW.digest): (made("a"),)}).problems == (twice,)


def test_a_piece_that_is_unknown_isnt_believed() -> None:
    with pytest.raises(KeyError):
        assembled([Piece(NEW.place, NEW.digest, False)], {})
