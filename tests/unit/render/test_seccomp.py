"""The filter's program, run here as the kernel would run it, for each machine; and its numbers beside the kernel's own headers."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

from handler.render import seccomp

ARCHITECTURES = {"x86_64": 62 | 0xC000_0000, "aarch64": 183 | 0xC000_0000}  # linux/audit.h: ELF machine, 64 bits, little-endian
HEADERS = {
    "x86_64": ("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm/unistd_64.h"),
    "aarch64": ("/usr/include/asm-generic/unistd.h",),
}
ALLOW, REFUSE, KILL = 0x7FFF_0000, 0x0005_0001, 0x8000_0000
PID, X32 = 4_711, 0x4000_0000


def verdict(program: bytes, architecture: int, number: int, argument: int = 0, flags: int = 0) -> int:
    """Run a classic BPF program over one struct seccomp_data. `argument`: the first one; `flags`: the fourth, of what has it there."""
    data = struct.pack("<IIQ6Q", number, architecture, 0, argument, 0, 0, flags, 0, 0)
    steps = list(struct.iter_unpack("<HBBI", program))
    at = loaded = 0
    while True:
        code, yes, no, operand = steps[at]
        at += 1
        if code == 0x20:
            (loaded,) = struct.unpack_from("<I", data, operand)
        elif code == 0x15:
            at += yes if loaded == operand else no
        else:
            assert code == 0x06
            return int(operand)


def program(machine: str) -> bytes:
    built = seccomp.build(machine=machine)
    assert built
    return built.program(PID)


def allowed(machine: str, argument: int = 0, flags: int = 0) -> set[int]:
    made = program(machine)
    return {number for number in range(1024) if verdict(made, ARCHITECTURES[machine], number, argument, flags) == ALLOW}


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_a_system_call_that_is_not_named_is_refused(machine: str) -> None:
    column = list(ARCHITECTURES).index(machine)
    named = {seccomp._NUMBERS[name][column] for name in (*seccomp.RENDER, *seccomp.PLAIN)}
    assert allowed(machine) == named
    assert {verdict(program(machine), ARCHITECTURES[machine], number) for number in range(1024) if number not in named} == {REFUSE}


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_a_process_may_signal_itself_alone(machine: str) -> None:
    column = list(ARCHITECTURES).index(machine)
    assert allowed(machine, PID) - allowed(machine, PID + 1) == {seccomp._NUMBERS[name][column] for name in seccomp.ABORT}


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_nothing_is_sent_or_received_with_flags(machine: str) -> None:
    column = list(ARCHITECTURES).index(machine)
    for flag in (1, 0x40, 0x8000_0000):
        assert allowed(machine) - allowed(machine, flags=flag) == {seccomp._NUMBERS[name][column] for name in seccomp.PLAIN}


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_calls_of_another_architecture_kill(machine: str) -> None:
    others = [0x4000_0003, *(each for name, each in ARCHITECTURES.items() if name != machine)]  # i386
    assert {verdict(program(machine), other, number) for other in others for number in range(512)} == {KILL}


def test_calls_of_x32_are_refused() -> None:
    assert {verdict(program("x86_64"), ARCHITECTURES["x86_64"], number | X32, PID) for number in range(1024)} == {REFUSE}


def test_a_machine_whose_numbers_are_not_known_has_no_filter() -> None:
    assert seccomp.build(machine="riscv64") is None


@pytest.mark.parametrize("machine", HEADERS)
def test_the_numbers_are_those_of_the_kernels_headers(machine: str) -> None:
    found = next((path for path in map(Path, HEADERS[machine]) if path.exists()), None)
    if found is None:
        pytest.skip(f"no {HEADERS[machine][0]}: apt-get install linux-libc-dev")
    defined = dict(re.findall(r"^#define __NR(?:3264)?_(\w+)\s+(\d+)$", found.read_text(), re.MULTILINE))
    column = list(HEADERS).index(machine)
    assert {name: numbers[column] for name, numbers in seccomp._NUMBERS.items()} == {name: int(defined[name]) for name in seccomp._NUMBERS}
    assert set(seccomp._NUMBERS) == {*seccomp.RENDER, *seccomp.PLAIN, *seccomp.ABORT}
