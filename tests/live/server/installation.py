"""Installs the server into a folder: Neo4j's jars with Maven, the Python packages with uv, both at the same time.

What is installed is kept and used again as long as the pins beside this file are the same.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.live.server.errors import LiveServerError

HERE = Path(__file__).parent
POM, CONSTRAINTS, PINS = HERE / "pom.xml", HERE / "constraints.txt", HERE / "pins.toml"
PYTHON_VARIABLE = "APPLY_LEDGER_TEST_INFRAHUB_PYTHON"
_LINES_SHOWN = 30


def read_pins() -> dict[str, Any]:
    """The pinned versions."""
    return tomllib.loads(PINS.read_text(encoding="utf-8"))


def install(home: Path) -> None:
    """Bring jars and Python packages into ``home``; does nothing for what is there already.

    Raises:
        LiveServerError: no fitting Python or Java, or Maven or the installer failed; its last lines are in the message.
    """
    home.mkdir(parents=True, exist_ok=True)
    java()
    with ThreadPoolExecutor(2) as pool:
        for part in [pool.submit(_install_jars, home), pool.submit(_install_packages, home)]:
            part.result()


def java() -> str:
    """The Java program.

    Raises:
        LiveServerError: there is none.
    """
    home = os.environ.get("JAVA_HOME")
    found = f"{home}/bin/java" if home else shutil.which("java")
    if found is None or not Path(found).is_file():
        wanted = " or ".join(map(str, read_pins()["java"]))
        raise LiveServerError(f"Neo4j needs Java {wanted}. On Debian: apt-get install openjdk-17-jre-headless maven")
    return found


def python() -> str:
    """An interpreter that the server's packages run on.

    Raises:
        LiveServerError: there is none.
    """
    versions: list[str] = read_pins()["python"]
    for candidate in _interpreters(versions):
        version = _version_of(candidate)
        if version in versions:
            return candidate
    raise LiveServerError(
        f"Infrahub's server needs Python {' or '.join(versions)} with venv, and none was found. Install one"
        f" (Debian 13: apt-get install python3 python3-venv; elsewhere: uv python install {versions[0]}, or"
        f" pyenv install {versions[0]}) and put it into PATH, or name it: {PYTHON_VARIABLE}=/path/to/python"
    )


def _interpreters(versions: list[str]) -> Iterator[str]:
    if named := os.environ.get(PYTHON_VARIABLE):
        yield named
        return
    pyenv = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser()
    managed = Path(os.environ.get("UV_PYTHON_INSTALL_DIR", "~/.local/share/uv/python")).expanduser()
    for version in versions:
        yield from sorted(map(str, pyenv.glob(f"versions/{version}.*/bin/python")), reverse=True)
        yield from sorted(map(str, managed.glob(f"cpython-{version}*/bin/python3")), reverse=True)
        if found := shutil.which(f"python{version}"):
            yield found
    if found := shutil.which("python3"):
        yield found


def _version_of(interpreter: str) -> str:
    """Major and minor version of an interpreter that can make environments; empty for one that cannot."""
    code = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run([interpreter, "-c", code], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _install_jars(home: Path) -> None:
    jars = home / "jars"
    if _is_current(jars, _digest(POM.read_text(encoding="utf-8"))):
        return
    shutil.rmtree(jars, ignore_errors=True)
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={jars}"]
    _run(["mvn", "-B", "-q", "-f", str(POM), "-Dmaven.artifact.threads=16", *goal])
    _mark(jars, _digest(POM.read_text(encoding="utf-8")))


def _install_packages(home: Path) -> None:
    venv, pins = home / "venv", read_pins()
    interpreter = python()
    wanted = _digest(CONSTRAINTS.read_text(encoding="utf-8"), *pins["packages"], interpreter)
    if _is_current(venv, wanted):
        return
    shutil.rmtree(venv, ignore_errors=True)
    _run([interpreter, "-m", "venv", str(venv)])
    _run(
        [str(venv / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", pins["installer"]]
    )
    options = ["--python", str(venv / "bin/python"), "--compile-bytecode", "--constraint", str(CONSTRAINTS)]
    _run([str(venv / "bin/uv"), "pip", "install", "--quiet", *options, *pins["packages"]])
    _mark(venv, wanted)


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
    except OSError as exc:
        raise LiveServerError(f"{command[0]} cannot be run: {exc.strerror}. On Debian: apt-get install maven") from exc
    if done.returncode != 0:
        end = "\n".join(done.stdout.splitlines()[-_LINES_SHOWN:])
        raise LiveServerError(f"{' '.join(command[:4])} … ended with {done.returncode}\n{end}")


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def _is_current(folder: Path, wanted: str) -> bool:
    mark = folder / ".installed"
    return mark.is_file() and mark.read_text(encoding="ascii") == wanted


def _mark(folder: Path, wanted: str) -> None:
    (folder / ".installed").write_text(wanted, encoding="ascii")


if __name__ == "__main__":
    try:
        sys.stdout.write(f"{python()}\n")
    except LiveServerError as error:
        sys.exit(str(error))
