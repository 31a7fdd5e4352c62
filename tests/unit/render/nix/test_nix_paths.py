"""Path literals of Nix files."""

from __future__ import annotations

import pytest

from handler.render.nix.nix_paths import decode_literals, literals, read_paths


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import ./a.nix", ["./a.nix"]),
        ("[ ../modules/web.nix ./. ../. ./.. ]", ["../modules/web.nix", "./.", "../.", "./.."]),
        ("{ imports = [./a.nix];b=(../b);c=./c; }", ["./a.nix", "../b", "./c"]),
        ('"${./x.txt}"', ["./x.txt"]),
        ("import hosts/prod.nix + a/b", ["hosts/prod.nix"]),
        ("./files/${name}.txt", ["./files/"]),
        ("../${name}", ["../"]),
        ("./a+b/c-d_e.f", ["./a+b/c-d_e.f"]),
        ("<nixpkgs/lib/x.nix> /abs/x.nix ~/x.nix https://e.com/x.nix", []),
        ("a.b.c x: 1 ... [ .. ]", []),
        ("./a.nix ./a.nix", ["./a.nix"]),
        ("./" + "a/" * 3_000, []),
    ],
)
def test_relative_paths_are_found(text: str, found: list[str]) -> None:
    assert literals(text) == found


def test_the_literals_of_files_are_read_back() -> None:
    frames = list(read_paths({}, [b"./a", b"\xff ../b", b""]))
    assert [decode_literals(frame) for frame in frames] == [["./a"], ["../b"], []]


@pytest.mark.parametrize("frame", [b"{}", b"[1]", b'["a\\u0000"]', b"1"])
def test_what_is_no_list_of_paths_isnt_believed(frame: bytes) -> None:
    with pytest.raises(ValueError, match="no paths"):
        decode_literals(frame)
