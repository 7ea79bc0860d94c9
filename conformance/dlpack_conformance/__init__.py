"""Tests whether a library conforms to DLPack, with the standard library of Python alone.

    python -m dlpack_conformance torch                         # a library of the list
    python -m dlpack_conformance mylib:from_tensor --from mylib:from_dlpack

Each check has a rule, its source and a severity, and runs in a separate process, so that a crash
is a verdict. In pytest:

    import dlpack_conformance as conform

    class MyLibrary(conform.Library):
        def make(self, tensor): return mylib.asarray(tensor.numpy())
        def take(self, producer): return mylib.from_dlpack(producer)

    test_dlpack = conform.checks(MyLibrary, known={"P15": "see our issue 7"})

or without a file: DLPACK_CONFORMANCE=mylib pytest --pyargs dlpack_conformance
"""

from __future__ import annotations

from . import (  # noqa: F401  they register checks, in this order
    _consumers,
    _consumers_use,
    _devices,
    _producers,
    _producers_tensors,
    _cross,
    _exchanges,
)
from ._libraries import LIBRARIES, Library
from ._model import CHECKS, SEVERITIES, Check, Verdict
from ._run import judge, judge_forked
from ._tensors import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    Known = Mapping[str, str] | Iterable[str]

__version__ = "0.1.0"
__all__ = ["CHECKS", "Check", "LIBRARIES", "Library", "SEVERITIES", "Tensor", "Verdict",
           "checks", "judge", "judge_forked", "main"]


def checks(library: type[Library] | Library, known: Known = (), skips: Known = (),
           standard: str | None = None) -> Callable[..., None]:
    """A test for pytest with a parameter for each check. Known violations are expected to fail,
    and such a test that passes is reported as a failure; those of `skips` do not run."""
    import os
    from collections.abc import Mapping

    import pytest

    from ._texts import asked

    def reasons(named: Known, what: str) -> Mapping[str, str]:
        found = named if isinstance(named, Mapping) else dict.fromkeys(named, what)
        for name in found:
            if name not in CHECKS:
                raise ValueError(f"{what}: there is no check {name!r}")
        return found

    fails, skipped = reasons(known, "known"), reasons(skips, "skips")
    instances: list[Library] = []

    def parameter(check: Check) -> Any:
        if check.id in skipped:
            marks = [pytest.mark.skip(reason=skipped[check.id])]
        elif check.id in fails:
            marks = [pytest.mark.xfail(reason=fails[check.id], strict=True)]
        else:
            marks = []
        return pytest.param(check, id=check.id, marks=marks)

    @pytest.mark.parametrize("check", [
        parameter(check) for check in CHECKS.values()
        if standard is None or asked(check.text, standard)])
    def test(check: Check) -> None:
        if not instances:
            instances.append(library() if isinstance(library, type) else library)
        forks = hasattr(os, "fork") and instances[0].fork
        verdict = (judge_forked if forks else judge)(instances[0], check)
        if verdict.outcome == "skip" or (verdict.violation and not verdict.counts):
            pytest.skip(f"{check.rule}: {verdict.text}")
        if verdict.violation:
            pytest.fail(f"{check.explain()}\n{verdict.outcome}: {verdict.text}", pytrace=False)

    return test


def main(arguments: list[str] | None = None) -> int:
    from ._cli import main as run

    return run(arguments)
