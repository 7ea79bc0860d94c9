"""The first projects and answers of the documentation, run as they stand on their pages: files are
written into an empty folder, commands run there, and what they print is compared."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import py_module

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["first/c", "first/cpp", "first/python", "howto/raw_pointer", "howto/capture"]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_prints_what_it_says(page, tmp_path):
    text = (ROOT / "docs" / page).with_suffix(".md").read_text()
    files = re.findall(r"^`(\w+\.\w+)`:\n\n```\w+\n(.*?)^```$", text, re.M | re.S)
    runs = re.findall(r"^```sh\n(.*?)^```\n(?:\n[^\n`#]+\n)?\n```text\n(.*?)^```$", text,
                      re.M | re.S)
    assert files and runs and len(runs) == text.count("```sh\n") == text.count("```text\n")
    if "nanobind" in text:
        pytest.importorskip("nanobind")
    if "-shared" in text and not (shutil.which("cc") and shutil.which("c++")):
        pytest.skip("no compiler")
    for name, content in files:
        (tmp_path / name).write_text(content)
    script = f'python() {{ "{sys.executable}" "$@"; }}\n'
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "PYTHONDONTWRITEBYTECODE": "1",
                   "DLPACK_RS_LIBRARY": py_module.LIBRARY}
    for commands, said in runs:
        done = subprocess.run(["sh", "-euc", script + commands], cwd=tmp_path, env=environment,
                              capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (0, said), done.stderr
