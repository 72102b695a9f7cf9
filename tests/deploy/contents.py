"""Look through what is to be published: the wheel has the package and nothing else, the sdist what makes and tests it.

python tests/deploy/contents.py FILE...
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

SOURCE = Path(__file__).parents[2]

WHEEL = ("proxy",)
SDIST = ("proxy", "tests", "fixtures", "docs", "README.md", "CHANGELOG.md", "LICENSE", "pyproject.toml")

METADATA = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"}
BESIDE = {"PKG-INFO", ".gitignore"}  # hatchling puts them in


def tracked(*names: str) -> set[str]:
    """The files of the tree under ``names``, but for those that git ignores."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", *names]
    listed = subprocess.run(command, cwd=SOURCE, check=True, capture_output=True, text=True).stdout
    return {name for name in listed.split("\0") if name and (SOURCE / name).is_file()}


def difference(file: Path) -> list[str]:
    """What ``file`` lacks, and what it has too much."""
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as wheel:
            held = set(wheel.namelist())
        info = next(name.partition("/")[0] for name in held if ".dist-info/" in name)
        wanted = tracked(*WHEEL) | {f"{info}/{name}" for name in METADATA}
    else:
        with tarfile.open(file) as sdist:
            held = {member.name.partition("/")[2] for member in sdist.getmembers() if member.isfile()}
        wanted = tracked(*SDIST) | BESIDE
    return [f"lacks {name}" for name in sorted(wanted - held)] + [f"holds {name}" for name in sorted(held - wanted)]


def main(files: list[str]) -> int:
    """Say what is wrong with ``files``. The exit code is 1 if anything is."""
    wrong = [f"{Path(file).name} {what}" for file in files for what in difference(Path(file))]
    print("\n".join(wrong) or f"{len(files)} files hold what they should")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
