"""How much a git host may send. Law: every loop over what a host sends ends at one of these."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class HostLimits:
    """Times in seconds, sizes in bytes. `total`: of one resolve, fetch or later fetch of blobs."""

    connect: float = 10.0
    read: float = 30.0
    total: float = 120.0
    refs: int = 64 * MIB
    pack: int = 128 * MIB
    objects: int = 500_000
    object: int = 32 * MIB
    inflated: int = 256 * MIB
    entries: int = 200_000
    depth: int = 64
    path: int = 4096
    cache: int = 64 * MIB
