"""How much a registry or chart repository may send. Law: every loop over what it sends ends at one of these."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class ChartLimits:
    """Times in seconds, sizes in bytes. `total`: of one chart, with its index or tags; `pages`: of tags; `cache`: of a process."""

    connect: float = 10.0
    read: float = 30.0
    total: float = 120.0
    index: int = 50 * MIB
    archive: int = 20 * MIB
    manifest: int = 4 * MIB
    tags: int = 4 * MIB
    token: int = 256 << 10
    pages: int = 100
    redirects: int = 5
    cache: int = 64 * MIB
