"""What a host is said to run short of."""

from typing import Any

import pytest

from shiftboss.queue.shortage import Shortage, shortages

GB = 1024 * 1024


def disk(total: float, free: float, *of: str) -> dict[str, Any]:
    """What is measured of a disk, in gigabytes."""
    return {"disks": [{"of": list(of or ("home",)), "total_kb": int(total * GB), "free_kb": int(free * GB)}]}


def memory(total: int, available: float) -> dict[str, Any]:
    """What is measured of the memory, in gigabytes."""
    return {"memory": {"total_kb": total * GB, "available_kb": int(available * GB)}}


@pytest.mark.requirement("L28")
@pytest.mark.parametrize(
    ("measured", "short"),
    [
        (None, []),
        ({}, []),
        ({"memory": None, "processor": None, "disks": [], "files": None}, []),
        (disk(100, 9), [Shortage("disk", "home", 91)]),
        (disk(100, 9, "home", "data"), [Shortage("disk", "home, data", 91)]),
        (disk(100, 11), []),
        # However full: two hundred gigabytes are room enough.
        (disk(4000, 200), []),
        (disk(4000, 9), [Shortage("disk", "home", 99)]),
        # However large a part of a small disk: 300 MB are soon gone.
        (disk(1, 0.3), [Shortage("disk", "home", 70)]),
        (disk(0, 0), [Shortage("disk", "home", 0)]),
        (memory(16, 1.5), [Shortage("memory", None, 90)]),
        (memory(16, 2), []),
        ({"files": {"of": "web", "open": 900, "most": 1024}}, [Shortage("files", "web", 87)]),
        ({"files": {"of": "web", "open": 500, "most": 1024}}, []),
        ({"processor": {"cores": 2, "percent": 100, "waiting_percent": 85.2}}, [Shortage("processor", None, 85)]),
        # Busy is not short, as long as nobody waits.
        ({"processor": {"cores": 2, "percent": 100, "waiting_percent": 20.0}}, []),
        ({"processor": {"cores": 2, "percent": 100, "waiting_percent": None}}, []),
        ({"supervisor": {"percent": 97}}, [Shortage("supervisor", None, 97)]),
        ({"supervisor": {"percent": 5}}, []),
        (memory(16, 0) | disk(100, 0), [Shortage("disk", "home", 100), Shortage("memory", None, 100)]),
    ],
)
def test_what_is_short_is_said_and_nothing_else(measured: Any, short: list[Shortage]) -> None:
    assert shortages(measured) == tuple(short)
