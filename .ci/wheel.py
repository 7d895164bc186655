"""Build the wheel and compare it with the package's folder: each file is in it, and nothing else."""

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def build(folder: Path) -> Path:
    """The wheel of this checkout, built into the folder."""
    # A build folder left over from before would smuggle in files that are gone.
    command = ["build", "--wheel", "--no-isolation", "--outdir", str(folder), "-C--build-option=build"]
    command += [f"-C--build-option=--build-base={folder}/build"]
    subprocess.run([sys.executable, "-m", *command, str(ROOT)], check=True, stdout=subprocess.DEVNULL)
    [wheel] = folder.glob("*.whl")
    return wheel


def main() -> int:
    """Exit code 0 where the wheel holds the package, whole and alone."""
    with tempfile.TemporaryDirectory() as folder:
        wheel = build(Path(folder))
        held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    files = (path for path in (ROOT / "shiftboss").rglob("*") if path.is_file())
    expected = {path.relative_to(ROOT).as_posix() for path in files if "__pycache__" not in path.parts}
    for name in sorted(expected - held):
        print(f"missing in the wheel: {name}")
    for name in sorted(held - expected):
        print(f"in the wheel, but not in the package: {name}")
    for kind in (".sql", ".html", ".css", "py.typed"):
        if not any(name.endswith(kind) for name in held):
            print(f"no {kind} in the wheel at all")
            return 1
    print(f"wheel: {len(held)} files")
    return int(expected != held)


if __name__ == "__main__":
    sys.exit(main())
