"""What the host's agent measures: on this machine, and on others as their kernels tell of them."""

import os
from pathlib import Path

import pytest

from shiftboss.supervisor_conf.resources import Resources

MEMINFO = "MemTotal:       16000000 kB\nMemFree:          100000 kB\nMemAvailable:    4000000 kB\n"
PRESSURE = "some avg10=12.50 avg60=85.20 avg300=40.00 total=1\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"


def written(folder: Path, **files: str) -> Path:
    """The folder, with these files in it; `__` is a folder's edge and `_dot_` a dot."""
    for name, text in files.items():
        file = folder / name.replace("__", "/").replace("_dot_", ".")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


@pytest.mark.requirement("L28")
def test_this_machine_is_measured(tmp_path: Path) -> None:
    resources = Resources({"home": tmp_path, "data": tmp_path, "gone": tmp_path / "gone"})
    resources.measure({})
    left = resources.measure({"test": os.getpid(), "gone": 2**22 + 1})
    assert 0 < left["memory"]["available_kb"] <= left["memory"]["total_kb"]
    assert left["processor"]["cores"] == os.cpu_count()
    [disk] = left["disks"]
    assert disk["of"] == ["home", "data"]
    assert 0 < disk["free_kb"] <= disk["total_kb"]
    assert left["files"]["of"] == "test"
    assert 3 <= left["files"]["open"] <= left["files"]["most"]


def test_what_the_kernel_says_of_memory_and_processor_is_read(tmp_path: Path) -> None:
    proc = written(tmp_path, meminfo=MEMINFO, stat="cpu  100 0 100 800 0 0 0 0 0 0\n", pressure__cpu=PRESSURE)
    resources = Resources({}, proc=proc, cgroups=tmp_path / "none")
    first = resources.measure({})
    assert first["memory"] == {"total_kb": 16_000_000, "available_kb": 4_000_000}
    assert (first["processor"]["percent"], first["processor"]["waiting_percent"]) == (None, 85.2)
    written(proc, stat="cpu  150 0 125 825 0 0 0 0 0 0\n")
    assert resources.measure({})["processor"]["percent"] == 75
    assert (first["disks"], first["files"]) == ([], None)


@pytest.mark.parametrize(
    ("files", "available_kb"),
    [
        ({"memory_dot_max": "2048000000\n", "memory_dot_current": "1024000000\n"}, 1_000_000),
        (
            {
                "memory_dot_max": "2048000000\n",
                "memory_dot_current": "2048000000\n",
                "memory_dot_stat": "anon 5\ninactive_file 1024000000\n",
            },
            1_000_000,
        ),
        (
            {
                "memory__memory_dot_limit_in_bytes": "2048000000\n",
                "memory__memory_dot_usage_in_bytes": "2048000000\n",
                "memory__memory_dot_stat": "total_inactive_file 512000000\n",
            },
            500_000,
        ),
    ],
)
def test_in_a_container_its_own_limit_counts(tmp_path: Path, files: dict[str, str], available_kb: int) -> None:
    proc = written(tmp_path / "proc", meminfo=MEMINFO)
    resources = Resources({}, proc=proc, cgroups=written(tmp_path / "groups", **files))
    assert resources.measure({})["memory"] == {"total_kb": 2_000_000, "available_kb": available_kb}


@pytest.mark.parametrize("limit", ["max\n", "9223372036854771712\n", "nonsense", ""])
def test_without_a_limit_the_machine_counts(tmp_path: Path, limit: str) -> None:
    proc = written(tmp_path / "proc", meminfo=MEMINFO)
    groups = written(tmp_path / "groups", memory_dot_max=limit, memory_dot_current="1\n")
    assert Resources({}, proc=proc, cgroups=groups).measure({})["memory"]["total_kb"] == 16_000_000


def test_where_there_is_nothing_to_read_nothing_is_said(tmp_path: Path) -> None:
    left = Resources({"home": tmp_path / "gone"}, proc=tmp_path, cgroups=tmp_path).measure({"web": 1})
    assert left == {
        "memory": None,
        "processor": {"cores": os.cpu_count(), "percent": None, "waiting_percent": None},
        "disks": [],
        "files": None,
        "supervisor": None,
    }


def test_a_supervisor_that_spins_is_found_out_within_a_minute(tmp_path: Path) -> None:
    now = 0.0
    resources = Resources({}, proc=tmp_path, cgroups=tmp_path, clock=lambda: now)
    ticks = os.sysconf("SC_CLK_TCK")

    def taken(seconds: float, *, pid: int = 7) -> int | None:
        """What is told once the supervisor has used so much."""
        tail = " 0" * 30
        written(tmp_path, **{"8__stat": f"8 (launcher) S {pid} 8 8{tail}"})
        used = f"{int(seconds * ticks)} 0"
        written(tmp_path, **{f"{pid}__stat": f"{pid} (a ) name) R 1 7 7 0 -1 0 0 0 0 0 {used}{tail}"})
        told = resources.measure({}, launcher=8)["supervisor"]
        return None if told is None else int(told["percent"])

    assert taken(100) is None
    now = 29.0
    assert taken(101) is None
    now = 40.0
    assert taken(102) == 5
    now = 99.0
    assert taken(161) == 100
    # Another one has come in its place.
    assert taken(0, pid=9) is None
    assert resources.measure({})["supervisor"] is None
