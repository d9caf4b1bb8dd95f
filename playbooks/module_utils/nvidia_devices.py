"""NVIDIA's devices on the PCI bus, and what their numbers say of them without any driver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

_VENDOR = "0x10de"
_DISPLAY, _BRIDGE = "0x03", "0x0680"


@dataclass(frozen=True)
class Device:
    """One PCI function of NVIDIA's: its address, its device number, its class as sysfs writes it."""

    address: str
    number: int
    kind: str

    @property
    def is_gpu(self) -> bool:
        """Whether it is a display or 3D controller."""
        return self.kind.startswith(_DISPLAY)

    @property
    def is_switch(self) -> bool:
        """Whether it is an NVSwitch, up to the generation of Hopper."""
        return self.kind.startswith(_BRIDGE)


@dataclass(frozen=True)
class Architecture:
    """A generation of GPUs: which kernel modules drive it, and the driver branches that do.

    ``open_modules`` is ``refused``, ``supported`` or ``required``. ``last_branch`` 0 means: still driven.
    """

    name: str
    open_modules: str
    first_branch: int
    last_branch: int


KEPLER = Architecture("Kepler", "refused", 304, 470)
MAXWELL = Architecture("Maxwell", "refused", 343, 580)
PASCAL = Architecture("Pascal", "refused", 367, 580)
VOLTA = Architecture("Volta", "refused", 384, 580)
TURING = Architecture("Turing", "supported", 410, 0)
AMPERE = Architecture("Ampere", "supported", 450, 0)
ADA = Architecture("Ada", "supported", 520, 0)
HOPPER = Architecture("Hopper", "supported", 525, 0)
GRACE_HOPPER = Architecture("Grace Hopper", "required", 535, 0)
BLACKWELL = Architecture("Blackwell", "required", 570, 0)
BLACKWELL_ULTRA = Architecture("Blackwell Ultra", "required", 580, 0)

_ARCHITECTURES: tuple[tuple[int, int, Architecture], ...] = (
    (0x0FC0, 0x103F, KEPLER),
    (0x1180, 0x131F, KEPLER),
    (0x1340, 0x143F, MAXWELL),
    (0x15C0, 0x15FF, PASCAL),
    (0x1600, 0x17FF, MAXWELL),
    (0x1B00, 0x1D7F, PASCAL),
    (0x1D80, 0x1DFF, VOLTA),
    (0x1E00, 0x1FFF, TURING),
    (0x2080, 0x20FF, AMPERE),
    (0x2180, 0x21FF, TURING),
    (0x2200, 0x228F, AMPERE),
    (0x2300, 0x2341, HOPPER),
    (0x2342, 0x2348, GRACE_HOPPER),
    (0x2349, 0x23FF, HOPPER),
    (0x2400, 0x25FF, AMPERE),
    (0x2680, 0x28FF, ADA),
    (0x2900, 0x2FFF, BLACKWELL),
    (0x3180, 0x33FF, BLACKWELL_ULTRA),
)
"""First and last device number, as in the public list of PCI numbers."""

_LINKED_BY_NVLINK5 = frozenset({0x2901, 0x3182})
"""GPUs on boards whose switches no longer show as NVIDIA's bridges: B200 and B300."""

_TYPES: dict[str, tuple[int, ...]] = {
    "p100": (0x15F7, 0x15F8, 0x15F9),
    "p40": (0x1B38,),
    "p4": (0x1BB3,),
    "v100": (0x1DB1, 0x1DB2, 0x1DB3, 0x1DB4, 0x1DB5, 0x1DB6, 0x1DB7, 0x1DB8, 0x1DF5),
    "v100s": (0x1DF6,),
    "t4": (0x1EB8,),
    "a100": (0x20B0, 0x20B1, 0x20B2, 0x20B3, 0x20B5, 0x20F1),
    "a30": (0x20B7,),
    "a800": (0x20BD, 0x20F3, 0x20F5, 0x20F6),
    "a6000": (0x2230,),
    "a5000": (0x2231,),
    "a4500": (0x2232,),
    "a5500": (0x2233,),
    "a40": (0x2235,),
    "a10": (0x2236,),
    "a10g": (0x2237,),
    "a4000": (0x24B0,),
    "h100": (0x2321, 0x2330, 0x2331, 0x2336, 0x2337, 0x2338, 0x2339, 0x233D),
    "h800": (0x2322, 0x2324, 0x233A),
    "h20": (0x2329, 0x232C),
    "h200": (0x2335, 0x233B),
    "gh200": (0x2342, 0x2348),
    "l40": (0x26B5,),
    "l40s": (0x26B9,),
    "l20": (0x26B7, 0x26BA),
    "l4": (0x27B8,),
    "b200": (0x2901,),
    "gb200": (0x2941,),
    "b300": (0x3182,),
    "gb300": (0x31C2, 0x31C3),
}
"""The types by which users ask for GPUs that clusters have; the same that the driver's names lead to."""

_TYPE_OF = {number: name for name, numbers in _TYPES.items() for number in numbers}


def read_devices(sys: Path) -> list[Device]:
    """NVIDIA's functions on the PCI bus, in the order of their addresses, which is the driver's."""
    return [
        Device(
            path.parent.name,
            int((path.parent / "device").read_text(encoding="ascii").strip(), 16),
            (path.parent / "class").read_text(encoding="ascii").strip(),
        )
        for path in sorted(sys.glob("bus/pci/devices/*/vendor"))
        if path.read_text(encoding="ascii").strip() == _VENDOR
    ]


def architecture(number: int) -> Architecture | None:
    """The generation of a GPU; None for one that is not known here, which is a new or a very old one."""
    return next((known for first, last, known in _ARCHITECTURES if first <= number <= last), None)


def gpu_types(devices: Iterable[Device]) -> Iterator[str]:
    """The type of each GPU; empty for one that only the driver can name."""
    for device in devices:
        if device.is_gpu:
            yield _TYPE_OF.get(device.number, "")


def fabric(devices: Iterable[Device]) -> str:
    """What links the GPUs: ``none``, ``nvswitch``, or ``nvlink5``, which needs a subnet manager, too."""
    known = list(devices)
    if any(device.number in _LINKED_BY_NVLINK5 for device in known):
        return "nvlink5"
    return "nvswitch" if any(device.is_switch for device in known) else "none"
