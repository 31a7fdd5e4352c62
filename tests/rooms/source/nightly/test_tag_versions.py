"""A range of versions against a real host, and against one that names a million tags."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import pytest
from dulwich.protocol import pkt_line

from handler.model.errors import SourceRefused
from tests.rooms.source.hostile_host import FLUSH, Hostile
from tests.rooms.source.open_repository import PATIENT, opened
from tests.rooms.source.test_tag_versions import RANGE


def test_a_hundred_thousand_tags_are_walked_and_not_kept_and_only_up_to_the_limit() -> None:
    tags = [pkt_line(f"{number:040x} refs/tags/v1.{number}.0 peeled:{number + 1:040x}\n".encode()) for number in range(100_000)]
    size = sum(map(len, tags))
    with Hostile(refs=[*tags, FLUSH]) as host:
        with opened(host.url, limits=PATIENT) as git:
            git.head(RANGE)  # what is made once is made
            tracemalloc.start()
            found = git.head(RANGE)
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        assert (found.tag, found.commit) == ("v1.99999.0", f"{100_000:040x}")
        assert peak < size / 2
        with opened(host.url, limits=replace(PATIENT, refs=size // 2)) as git, pytest.raises(SourceRefused, match="sends more than"):
            git.head(RANGE)
