"""A check: a rule, its source, the severity of a violation, and a judge."""

from __future__ import annotations

from dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    _Judge = TypeVar("_Judge", bound=Callable[[Any], None])

# Violations of MUST break other programs; SHOULD is what consumers rely on; ROBUST is about inputs
# that no correct producer gives; INFO counts for nothing.
SEVERITIES = ("MUST", "SHOULD", "ROBUST", "INFO")
# A violation by verdict, or by the end of the process, or a check that did not end.
VIOLATIONS = ("fail", "crash", "hang")

_DLPACK = "https://dmlc.github.io/dlpack/latest/"
_ARRAY_API = "https://data-apis.org/array-api/2023.12/API_specification/generated/array_api."
SOURCES = {
    "python": ("DLPack 1.3, Python Specification", _DLPACK + "python_spec.html"),
    "c": ("DLPack 1.3, C API", _DLPACK + "c_api.html"),
    "dlpack.h": ("dlpack.h 1.3",
                 "https://github.com/dmlc/dlpack/blob/v1.3/include/dlpack/dlpack.h"),
    "__dlpack__": ("array API standard 2023.12, __dlpack__",
                   _ARRAY_API + "array.__dlpack__.html"),
    "__dlpack_device__": ("array API standard 2023.12, __dlpack_device__",
                          _ARRAY_API + "array.__dlpack_device__.html"),
    "from_dlpack": ("array API standard 2023.12, from_dlpack", _ARRAY_API + "from_dlpack.html"),
    "practice": ("no text says so: what programs in use rely on", ""),
}


class Failed(Exception):
    """The rule is violated; the text gives the reason."""


class Misnamed(Failed):
    """A capsule has the name of one struct and the address of the other."""


class Unfreed(Failed):
    """The deleter of a tensor made by hand ran twice, or not at all."""

    def __init__(self, text: str, refused: bool) -> None:
        super().__init__(text)
        self.refused = refused


class Skipped(Exception):
    """The rule does not apply to the library; the text says what is missing."""


class Noted(Exception):
    """The rule is satisfied, with a remark."""


def must(condition: object, text: str) -> None:
    if not condition:
        raise Failed(text)


@dataclass(frozen=True)
class Check:
    """One rule. `judge` is called with a Library and returns, or raises one of the above."""

    id: str
    severity: str
    source: str  # a key of SOURCES
    rule: str
    judge: Callable[[Any], None]
    ends: bool = False  # the end of the process belongs to the check: it has to be a clean one

    @property
    def subject(self) -> str:
        """What the check tests: a producer, a consumer, or both."""
        return {"C": "consumer", "R": "both"}.get(self.id[0], "producer")

    def explain(self) -> str:
        title, url = SOURCES[self.source]
        doc = " ".join((self.judge.__doc__ or "").split())
        return "\n".join(filter(None, (f"{self.id} {self.severity}: {self.rule}",
                                       f"  {title}", f"  {url}" if url else "",
                                       f"  {doc}" if doc else "")))


CHECKS: dict[str, Check] = {}


def check(name: str, severity: str, source: str, rule: str, ends: bool = False,
          ) -> Callable[[_Judge], _Judge]:
    """Registers a function as a check. Identifiers are never reused for another rule."""
    assert severity in SEVERITIES and source in SOURCES and name not in CHECKS, name

    def register(judge: _Judge) -> _Judge:
        CHECKS[name] = Check(name, severity, source, rule, judge, ends)
        return judge

    return register


@dataclass(frozen=True)
class Verdict:
    """The result of one check: pass, note, skip, fail, crash or hang, and why."""

    check: Check
    outcome: str
    text: str = ""

    def __post_init__(self) -> None:
        """Others' messages may have what no terminal and no XML takes."""
        plain = (c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in self.text)
        object.__setattr__(self, "text", "".join(plain))

    @property
    def violation(self) -> bool:
        return self.outcome in VIOLATIONS

    @property
    def counts(self) -> bool:
        """Whether the verdict counts against the library."""
        return self.violation and self.check.severity != "INFO"
