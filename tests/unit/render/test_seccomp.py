"""The filter's program, run here as the kernel would run it, for each machine; and its numbers beside the kernel's own headers."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

from handler.render import seccomp

pytestmark = pytest.mark.slow

ARCHITECTURES = {"x86_64": 62 | 0xC000_0000, "aarch64": 183 | 0xC000_0000}  # linux/audit.h: ELF machine, 64 bits, little-endian
HEADERS = {
    "x86_64": ("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm/unistd_64.h"),
    "aarch64": ("/usr/include/asm-generic/unistd.h",),
}
ALLOW, REFUSE, UNKNOWN, KILL = 0x7FFF_0000, 0x0005_0001, 0x0005_0026, 0x8000_0000
PID, X32 = 4_711, 0x4000_0000


def verdict(program: bytes, architecture: int, number: int, argument: int = 0, flags: int = 0, second: int = 0, third: int = 0) -> int:
    """Run a classic BPF program over one struct seccomp_data. `argument`: the first one; `flags`: the fourth, of what has it there."""
    data = struct.pack("<IIQ6Q", number, architecture, 0, argument, second, third, flags, 0, 0)
    steps = list(struct.iter_unpack("<HBBI", program))
    at = loaded = 0
    while True:
        code, yes, no, operand = steps[at]
        at += 1
        if code == 0x20:
            (loaded,) = struct.unpack_from("<I", data, operand)
        elif code in (0x15, 0x45):
            at += yes if (loaded == operand if code == 0x15 else loaded & operand) else no
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


# --- the filter of programs
class Asked:
    """What one machine's filter of a program says to calls by name."""

    def __init__(self, machine: str, *, starts: bool = False, libraries: bool = False) -> None:
        built = seccomp.build_program(starts=starts, libraries=libraries, machine=machine)
        assert built
        self.program = built.program(PID)
        self.machine = machine

    def __call__(self, name: str, *arguments: int) -> int:
        first, second, third, fourth = (*arguments, 0, 0, 0, 0)[:4]
        number = seccomp._NUMBERS[name][list(ARCHITECTURES).index(self.machine)]
        assert number is not None
        return verdict(self.program, ARCHITECTURES[self.machine], number, first, second=second, third=third, flags=fourth)


@pytest.mark.parametrize("starts", [False, True])
@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_a_programs_system_call_that_is_not_named_is_refused(machine: str, starts: bool) -> None:
    column, made = list(ARCHITECTURES).index(machine), Asked(machine, starts=starts).program
    names = *seccomp.PROGRAM, *(seccomp.START if starts else ()), "openat", "mmap"
    named = {seccomp._NUMBERS[name][column] for name in names} - {None}
    judged = {number: verdict(made, ARCHITECTURES[machine], number, argument=PID + 1, second=1 << 20) for number in range(1024)}
    assert {number for number, found in judged.items() if found == ALLOW} - named <= (
        {seccomp._NUMBERS["clone"][column]} if starts else set()
    )
    assert named <= {number for number, found in judged.items() if found == ALLOW}
    assert {found for number, found in judged.items() if number not in named} <= {REFUSE, UNKNOWN, ALLOW}


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_a_program_with_libraries_has_what_its_threads_need_and_nothing_else(machine: str) -> None:
    plain, linked, column = Asked(machine), Asked(machine, libraries=True), list(ARCHITECTURES).index(machine)
    known = {name for name, numbers in seccomp._NUMBERS.items() if numbers[column] is not None}
    more = {name for name in known if linked(name) != plain(name)}
    assert more == set(seccomp.LIBRARIES) & known
    assert {linked(name) for name in more} == {ALLOW}


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_a_program_starts_threads_and_only_where_it_may_processes_but_never_namespaces(machine: str) -> None:
    alone, starting = Asked(machine), Asked(machine, starts=True)
    thread, process, namespaces = 0x50F00, 17 | 0x4100, [1 << bit for bit in (17, *range(25, 31))]
    assert (alone("clone", thread), alone("clone", process)) == (ALLOW, REFUSE)
    assert (starting("clone", thread), starting("clone", process)) == (ALLOW, ALLOW)
    assert {each("clone", flags | new) for each in (alone, starting) for flags in (thread, process) for new in namespaces} == {REFUSE}
    assert (alone("clone3"), starting("clone3")) == (UNKNOWN, UNKNOWN)


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_a_program_signals_itself_and_others_by_what_they_ignore_and_limits_itself_alone(machine: str) -> None:
    ask = Asked(machine)
    assert (ask("kill", PID, 9), ask("tgkill", PID, PID, 6)) == (ALLOW, ALLOW)
    assert (ask("kill", PID + 1, 9), ask("kill", 0, 9), ask("tgkill", PID + 1, PID + 1, 9)) == (REFUSE, REFUSE, REFUSE)
    assert ask("tgkill", PID + 1, PID + 1, 23) == ALLOW
    assert (ask("prlimit64", 0), ask("prlimit64", PID + 1)) == (ALLOW, REFUSE)
    assert (ask("fcntl", 3, 2), ask("fcntl", 3, 8), ask("fcntl", 3, 15), ask("fcntl", 3, 10)) == (ALLOW, REFUSE, REFUSE, REFUSE)


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_a_program_shares_no_memory_and_makes_no_file_without_a_name(machine: str) -> None:
    ask = Asked(machine)
    private, shared, checked, nameless, created = 2, 1, 3, 0x41_0000, 0o102
    assert [ask("mmap", 0, 4096, 3, 0x20 | kind) for kind in (private, shared, checked)] == [ALLOW, REFUSE, REFUSE]
    assert [ask("openat", 3, 0, flags) for flags in (created, nameless, nameless | created)] == [ALLOW, REFUSE, REFUSE]


@pytest.mark.parametrize("machine", HEADERS)
def test_the_numbers_are_those_of_the_kernels_headers(machine: str) -> None:
    found = next((path for path in map(Path, HEADERS[machine]) if path.exists()), None)
    if found is None:
        pytest.skip(f"no {HEADERS[machine][0]}: apt-get install linux-libc-dev")
    defined = dict(re.findall(r"^#define __NR(?:3264)?_(\w+)\s+(\d+)$", found.read_text(), re.MULTILINE))
    column = list(HEADERS).index(machine)
    defined.setdefault("newfstatat", defined.get("fstatat", ""))  # its name in the generic table
    known = {name: numbers[column] for name, numbers in seccomp._NUMBERS.items()}
    assert known == {name: int(defined[name]) if name in defined else None for name in seccomp._NUMBERS}
    used = {*seccomp.RENDER, *seccomp.PLAIN, *seccomp.ABORT, *seccomp.PROGRAM, *seccomp.START, *seccomp.SIGNAL, *seccomp.LIBRARIES}
    used |= {"clone", "clone3", "fcntl", "openat", "prlimit64"}  # by what is asked
    assert set(seccomp._NUMBERS) == used
