"""The filter of system calls, run here as the kernel runs it: what each call of a program is answered."""

from __future__ import annotations

import errno
import struct
from collections.abc import Iterator

import pytest

from quoth.tools.shell.landlock import filter_file, filter_program

# The numbers of the kernel's ABI, on each machine.
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
NUMBERS = {
    "x86_64": {"read": 0, "open": 2, "ioctl": 16, "socket": 41, "clone": 56, "creat": 85, "chmod": 90}
    | {"fchmod": 91, "mknod": 133, "openat": 257, "mknodat": 259, "fchmodat": 268, "clone3": 435}
    | {"openat2": 437, "fchmodat2": 452, "ptrace": 101, "mount": 165, "quotactl_fd": 443, "bpf": 321},
    "aarch64": {"read": 63, "ioctl": 29, "mknodat": 33, "fchmod": 52, "fchmodat": 53, "openat": 56}
    | {"socket": 198, "clone": 220, "clone3": 435, "openat2": 437, "fchmodat2": 452, "ptrace": 117}
    | {"mount": 40, "quotactl_fd": 443, "bpf": 280},
}
ANSWERS = {0x7FFF0000: "allowed", 0x50000 | errno.EPERM: "refused", 0x50000 | errno.ENOSYS: "unknown"}


def answer(machine: str, call: str | int, *arguments: int, of: str = "", modes_only: bool = False) -> str:
    """What the filter of a machine answers to a call that comes from a program ``of`` a machine."""
    number = NUMBERS[machine][call] if isinstance(call, str) else call
    given = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("<IIQ6Q", number, ARCHITECTURES[of or machine], 0x1234, *given)
    program = filter_program(machine, modes_only)
    steps = [struct.unpack_from("<HBBI", program, at) for at in range(0, len(program), 8)]
    place = value = 0
    while True:
        operation, met, unmet, operand = steps[place]
        place += 1
        match operation:
            case 0x20:
                (value,) = struct.unpack_from("<I", data, operand)
            case 0x06:
                return ANSWERS[operand]
            case 0x15:
                place += met if value == operand else unmet
            case 0x35:
                place += met if value >= operand else unmet
            case 0x45:
                place += met if value & operand else unmet
            case _:
                raise AssertionError(f"the kernel does not know {operation:#x}")


def machines(call: str) -> Iterator[str]:
    yield from (machine for machine, numbers in NUMBERS.items() if call in numbers)


@pytest.mark.parametrize("machine", NUMBERS)
def test_an_everyday_call_passes_and_those_of_the_kernel_s_owner_do_not(machine: str) -> None:
    said = {call: answer(machine, call) for call in ("read", "ptrace", "mount", "bpf", "quotactl_fd")}
    assert said == {"read": "allowed"} | dict.fromkeys(["ptrace", "mount", "bpf", "quotactl_fd"], "refused")
    assert answer(machine, "clone3") == answer(machine, "openat2") == "unknown"


def test_a_program_of_another_architecture_gets_nothing() -> None:
    assert answer("x86_64", "read", of="aarch64") == "refused"
    assert answer("x86_64", 0x3FFFFFFF) == "allowed"
    assert answer("x86_64", 0x40000000) == "refused"  # x32, which has other numbers
    assert answer("aarch64", 0x40000000) == "allowed"


@pytest.mark.parametrize("machine", NUMBERS)
def test_sockets_are_those_of_the_machine_and_of_the_internet(machine: str) -> None:
    allowed = [family for family in range(50) if answer(machine, "socket", family) == "allowed"]
    assert allowed == [1, 2, 10, 16]


@pytest.mark.parametrize("machine", NUMBERS)
def test_a_thread_is_made_and_no_namespace(machine: str) -> None:
    namespaces = [bit for bit in range(32) if answer(machine, "clone", 1 << bit) == "refused"]
    assert namespaces == [7, 17, 25, 26, 27, 28, 29, 30]
    assert answer(machine, "clone", 0x3D0F00) == "allowed"


@pytest.mark.parametrize("machine", NUMBERS)
def test_nothing_is_typed_into_the_terminal(machine: str) -> None:
    words = range(0x5400, 0x5430)
    typed = [word for word in words if answer(machine, "ioctl", 0, word) == "refused"]
    assert typed == [0x5412, 0x541C]
    assert answer(machine, "ioctl", 0x5412, 0) == "allowed"


@pytest.mark.parametrize("modes_only", [False, True])
@pytest.mark.parametrize(
    ("call", "before"),
    [
        ("chmod", 1),
        ("fchmod", 1),
        ("creat", 1),
        ("mknod", 1),
        ("fchmodat", 2),
        ("fchmodat2", 2),
        ("mknodat", 2),
    ],
)
def test_no_file_runs_as_its_owner(call: str, before: int, modes_only: bool) -> None:
    for machine in machines(call):
        for bit in range(16):
            said = answer(machine, call, *[0] * before, 1 << bit, modes_only=modes_only)
            assert said == ("refused" if bit in (10, 11) else "allowed"), (machine, bit)
        assert answer(machine, call, *[0o6000] * before, 0o755, 0o6000) == "allowed"


@pytest.mark.parametrize(("call", "before"), [("open", 1), ("openat", 2)])
def test_the_mode_of_an_opened_file_counts_where_it_is_created(call: str, before: int) -> None:
    for machine in machines(call):
        for bit in range(32):
            said = answer(machine, call, *[0] * before, 1 << bit, 0o4755)
            assert said == ("refused" if bit in (6, 22) else "allowed"), (machine, bit)
        for mode in (0o2000, 0o4000):
            assert answer(machine, call, *[0] * before, 0o100, mode) == "refused"
        assert answer(machine, call, *[0o6100] * before, 0o100, 0o1777, 0o6000) == "allowed"


@pytest.mark.parametrize("machine", NUMBERS)
def test_where_modes_alone_are_filtered_the_rest_passes(machine: str) -> None:
    for call in ("ptrace", "mount", "clone3", "socket"):
        assert answer(machine, call, 40, modes_only=True) == "allowed"


def test_a_call_that_one_machine_lacks_is_no_call_of_it() -> None:
    for number in (85, 90, 133):  # creat, chmod and mknod of the other machine
        assert answer("aarch64", number, 0, 0o6000) == "allowed"
    assert answer("aarch64", 0xFFFFFFFF, 0, 0o6000, 0o6000) == "allowed"


def test_the_file_with_the_filter_is_read_from_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quoth.tools.shell.landlock.filter_program", lambda: b"12345678")
    number = filter_file()
    assert number is not None
    with open(number, "rb") as file:
        assert file.read() == b"12345678"
    monkeypatch.setattr("quoth.tools.shell.landlock.filter_program", lambda: b"")
    assert filter_file() is None
