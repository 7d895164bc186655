"""What a host has left, and what it runs short of, in words."""

from shiftboss.console.short import measured

GB = 1024 * 1024


def test_what_was_measured_is_told_and_what_was_not_is_left_out() -> None:
    assert list(measured({"memory": None, "processor": None, "disks": [], "files": None})) == []
    told = measured(
        {
            "memory": {"total_kb": 16 * GB, "available_kb": 4 * GB},
            "processor": {"cores": 2, "percent": 35, "waiting_percent": None},
            "disks": [{"of": ["home", "a\u202eb"], "total_kb": 100 * GB, "free_kb": 1 * GB}],
            "files": {"of": "web", "open": 34, "most": 1024},
        }
    )
    assert [one.replace("\N{NO-BREAK SPACE}", " ") for one in told] == [
        "75 % of 16.0 GiB memory used",
        "processor 35 % busy (cores: 2)",
        "disk of home, a\\u202eb 99 % full, 1.0 GiB free",
        "web has 34 of 1,024 files open",
    ]
