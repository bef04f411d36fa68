"""Writes the hashes of all files of the packages that requirements.lock pins into it: .venv/bin/python scripts/lock.py

To change the packages: edit pyproject.toml, install into a new environment, run all tests, put the lines of
`pip freeze` in the place of those of requirements.lock, and run this.
"""

from __future__ import annotations

import re
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pip._internal.models.index import PyPI  # the index that pip itself takes by default

LOCK = Path(__file__).parents[1] / "requirements.lock"
FILE = re.compile(r'href="[^"#]*/([^"#/]+)#sha256=([0-9a-f]{64})"')
WHEEL = re.compile(r"[^-]+-([^-]+)(?:-\d[^-]*)?-[^-]+-[^-]+-[^-]+\.whl")


def hashes(pin: str) -> list[str]:
    """The hashes of all files of one version of a package."""
    name, version = pin.split("==")
    page = f"{PyPI.simple_url}/{re.sub(r'[-_.]+', '-', name).lower()}/"
    with urllib.request.urlopen(page, timeout=60) as answer:
        files = FILE.findall(answer.read().decode())
    found = sorted({digest for file, digest in files if version_of(file) == version})
    if not found:
        raise SystemExit(f"there is no file of {pin}")
    return found


def version_of(file: str) -> str | None:
    """The version that the name of a file tells; None for files that pip does not install."""
    wheel = WHEEL.fullmatch(file)
    if wheel:
        return wheel[1]
    return file.removesuffix(".tar.gz").rpartition("-")[2] if file.endswith(".tar.gz") else None


def main() -> None:
    lines = LOCK.read_text().splitlines()
    notes = [line for line in lines if line.startswith("#")]
    pins = [line.split(" ")[0] for line in lines if "==" in line and not line.startswith("#")]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(hashes, pins))
    blocks = [
        " \\\n    ".join([pin, *(f"--hash=sha256:{digest}" for digest in digests)])
        for pin, digests in zip(pins, found, strict=True)
    ]
    LOCK.write_text("\n".join([*notes, *blocks]) + "\n")


if __name__ == "__main__":
    main()
