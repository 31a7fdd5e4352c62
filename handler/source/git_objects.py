"""Objects of git in memory, by id."""

from __future__ import annotations

COMMIT, TREE, BLOB = 1, 2, 3
Objects = dict[str, tuple[int, bytes]]
"""Hex id -> type number and content."""
