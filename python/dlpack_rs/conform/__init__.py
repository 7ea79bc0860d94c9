"""Tests whether a library conforms to DLPack.

    python -m dlpack_rs conform torch                         # a library of the list
    python -m dlpack_rs conform mylib:from_tensor --from mylib:from_dlpack

Each check has a rule, its source and a severity, and runs in a separate process, so that a crash
is a verdict. In pytest:

    from dlpack_rs import conform

    class MyLibrary(conform.Library):
        def make(self, tensor): return mylib.asarray(tensor.numpy())
        def take(self, producer): return mylib.from_dlpack(producer)

    test_dlpack = conform.checks(MyLibrary, known={"P15": "see our issue 7"})
"""

from __future__ import annotations

from . import (  # noqa: F401  they register checks, in this order
    _consumers,
    _consumers_use,
    _devices,
    _producers,
    _producers_tensors,
    _exchanges,
)
from ._libraries import LIBRARIES, Library
from ._model import CHECKS, SEVERITIES, SOURCES, Check, Verdict
from ._run import judge, judge_forked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    Known = Mapping[str, str] | Iterable[str]

__all__ = ["CHECKS", "Check", "LIBRARIES", "Library", "SEVERITIES", "SOURCES", "Verdict", "checks",
           "consumer_checks", "judge", "judge_forked", "main", "producer_checks"]


def checks(library: type[Library] | Library, known: Known = (),
           subjects: Iterable[str] = ("producer", "consumer", "both")) -> Callable[..., None]:
    """A test for pytest with a parameter for each check. Known violations are expected to fail,
    and such a test that passes is reported as a failure."""
    import os
    from collections.abc import Mapping

    import pytest

    reasons = known if isinstance(known, Mapping) else dict.fromkeys(known, "known")
    for name in reasons:
        if name not in CHECKS:
            raise ValueError(f"known: there is no check {name!r}")

    def parameter(check: Check) -> Any:
        if check.id not in reasons:
            return pytest.param(check, id=check.id)
        return pytest.param(check, id=check.id,
                            marks=pytest.mark.xfail(reason=reasons[check.id], strict=True))

    @pytest.mark.parametrize("check", [parameter(check) for check in CHECKS.values()
                                       if check.subject in subjects])
    def test(check: Check) -> None:
        instance = library() if isinstance(library, type) else library
        how = judge_forked if hasattr(os, "fork") and instance.fork else judge
        verdict = how(instance, check)
        if verdict.outcome == "skip" or (verdict.violation and not verdict.counts):
            pytest.skip(f"{check.rule}: {verdict.text}")
        if verdict.violation:
            pytest.fail(f"{check.explain()}\n{verdict.outcome}: {verdict.text}", pytrace=False)

    return test


def producer_checks(library: type[Library] | Library, known: Known = (),
                    ) -> Callable[..., None]:
    """`checks` of what the library exports."""
    return checks(library, known, ("producer",))


def consumer_checks(library: type[Library] | Library, known: Known = (),
                    ) -> Callable[..., None]:
    """`checks` of what the library imports."""
    return checks(library, known, ("consumer", "both"))


def main(arguments: list[str] | None = None) -> int:
    from ._cli import main as run

    return run(arguments)
