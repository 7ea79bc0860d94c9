"""Identifiers, sentences, years of the standard, and reports."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import dlpack_conformance as conform
from commands import environment, run
from dlpack_conformance._texts import quoted


def test_identifiers_are_never_used_again():
    for letter in "PCRXD":
        ids = sorted(i for i in conform.CHECKS if i[0] == letter)
        fixed = [i for i in ids if i < f"{letter}80"]
        gone = {"C09", "C13", "C39", "C57", "C63", "C65", "P17", "P28", "P29", "P50", "P60", "P61",
                "R05", "R12"}
        every = sorted({*fixed, *(i for i in gone if i[0] == letter)})
        assert every == [f"{letter}{n:02}" for n in range(1, len(every) + 1)]
        assert not gone & set(ids)


def test_the_kit_imports_neither_a_framework_nor_dlpack_rs(tmp_path):
    """With Python's standard library alone."""
    done = subprocess.run(
        [sys.executable, "-B", "-S", "-c", "import dlpack_conformance, sys; "
         "print(*{name.partition('.')[0] for name in sys.modules})"],
        capture_output=True, text=True, env=environment())
    assert not {"numpy", "pytest", "dlpack_rs"} & set(done.stdout.split()), done
    assert "dlpack_conformance" in done.stdout.split(), done


def test_each_must_of_the_results_can_be_filed():
    """A report quotes the sentence, and its program needs the library and NumPy alone."""
    folder = Path(conform.__file__).parents[1]
    reports = {path: path.read_text() for path in (folder / "reports").glob("*-*.md")}
    assert reports
    for result in (folder / "results").glob("*.json"):
        data = json.loads(result.read_text())
        for name, verdict in data["verdicts"].items():
            check = conform.CHECKS[name]
            if check.severity == "MUST" and verdict.split(":")[0] in ("fail", "crash", "hang"):
                found = [text for path, text in reports.items() if re.search(rf"\b{name}\b", text)
                         and path.name.startswith(f"{data['library']}-")]
                assert found, f"{data['library']}: {name} has no report"
                assert all(quoted(check.text)[2] in text for text in found), (result, name)
    for path, text in reports.items():
        program = text.partition("```python\n")[2].partition("```")[0]
        modules = {node.names[0].name.partition(".")[0] for node in ast.walk(ast.parse(program))
                   if isinstance(node, ast.Import)}
        library = path.name.partition("-")[0]
        assert library in modules <= {library, "numpy", "ctypes", "gc"}, path
        assert len(program.splitlines()) <= 30, path


def test_rules_rest_on_sentences():
    for check in conform.CHECKS.values():
        assert check.severity != "MUST" or "\u201c" in check.explain(), check.id


def test_years_of_the_standard_ask_what_they_have():
    ids = {year: {line.split()[0] for line in run("--list", "--standard", year)[1].splitlines()}
           for year in ("2021.12", "2022.12", "2023.12", "2025.12")}
    assert ids["2021.12"] < ids["2022.12"] < ids["2023.12"] < ids["2025.12"] == set(conform.CHECKS)
    assert not {"P05", "P14", "C48", "X01"} & ids["2022.12"] and "P01" in ids["2022.12"]
    assert run("--list", "--standard", "2020.12")[0] == 2
