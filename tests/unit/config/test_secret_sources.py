"""What a store's answer must be to be a secret: a text, a key of a JSON object, not too long, never quoted."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

import pytest

from handler.config.git_settings import AwsSecret, SecretRef
from handler.config.secret_sources import LARGEST, read_regular
from handler.config.secrets import resolve
from handler.model.errors import ConfigInvalid, SecretUnavailable
from handler.source.ssh.known_hosts import pinned
from tests.unit.rows import each_row

VALUE = "CANARY-secret-value"
HOOK = SecretRef(aws_parameter="/anneal/hook")
KEYED = SecretRef(aws_secrets_manager=AwsSecret("a", "k"))


@each_row(
    ("text", "problem"),
    [
        ("CANARY no json", "isn't JSON, so it has no keys"),
        ('["CANARY"]', "is no JSON object"),
        ('{"CANARY": "x"}', "has no key k"),
        ('{"k": {"CANARY": 1}}', "its key k is no text"),
        ("[" * 100_000, "isn't JSON, so it has no keys"),
        ('{"k": " "}', "is empty"),
        (json.dumps({"k": "x" * (LARGEST + 1)}), f"is larger than {LARGEST} bytes"),
    ],
)
def test_a_document_without_the_key_is_never_quoted(text: str, problem: str) -> None:
    with pytest.raises(SecretUnavailable) as caught:
        resolve(KEYED, {}, lambda _: text)
    assert str(caught.value).startswith(f"AWS secret a, key k: {problem}")
    assert "CANARY" not in str(caught.value)
    assert caught.value.__context__ is None


@each_row("end", ["", "\n", "\r\n"])
def test_a_newline_at_the_end_is_dropped_as_of_a_file(end: str) -> None:
    assert resolve(HOOK, {}, lambda _: VALUE + end).reveal() == VALUE


# --- regular files
def test_a_file_is_read_as_far_as_wanted_through_links(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_bytes(b"0123456789")
    (tmp_path / "link").symlink_to(place)
    assert read_regular(tmp_path / "link", 4) == b"0123"
    assert read_regular(place, 100) == b"0123456789"


@pytest.mark.parametrize("kind", ["pipe", "directory", "device", "loop", "nothing"])
def test_a_pipe_device_or_directory_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    place = tmp_path / kind
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "directory":
        place.mkdir()
    elif kind != "nothing":
        place.symlink_to("/dev/zero" if kind == "device" else place)
    with pytest.raises(OSError, match=r"."):
        read_regular(place, 10)
    with pytest.raises(ConfigInvalid, match="can't be read"):
        pinned(str(place), "git.example.com", 22)
    assert not [each for each in opened() if each in (str(place), "/dev/zero")], "a descriptor is left open"


def opened() -> list[str]:
    """What this process's descriptors stand for: other tests' leftovers may go meanwhile, so a count says nothing."""
    found = []
    for each in Path("/proc/self/fd").iterdir() if Path("/proc/self/fd").is_dir() else ():  # other systems don't say what one stands for
        with suppress(FileNotFoundError):  # the listing's own is gone by now
            found.append(str(each.readlink()))
    return found
