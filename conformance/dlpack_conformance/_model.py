"""A check: a rule, the sentence it rests on, the severity of a violation, and a judge."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps

from ._texts import PRACTICE, TEXTS, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    _Judge = Callable[[Any], Any]

# Violations of MUST break other programs; SHOULD is what consumers rely on; ROBUST is about inputs
# that no correct producer gives; INFO counts for nothing.
SEVERITIES = ("MUST", "SHOULD", "ROBUST", "INFO")
# A violation by verdict, or by the end of the process, or a check that did not end.
VIOLATIONS = ("fail", "crash", "hang")


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


def said(error):
    return f"{type(error).__name__}: {str(error)[:100]}"


def must(condition: object, text: str) -> None:
    if not condition:
        raise Failed(text)


STAGE = [lambda what: None]  # called with what runs beyond the rule, and with "" at its end


def findings(library: Any) -> dict[str, Any]:
    """What a check found out that others need, too: it is found once, by whichever process."""
    found: dict[str, Any] = library.__dict__.setdefault("_known", {})
    return found


@contextmanager
def own(what: str) -> Iterator[None]:
    """Code of the library that the rule is not about, such as its view: where it raises, or the
    process dies in it, no rule of DLPack is violated."""
    STAGE[0](what)
    try:
        yield
    except Skipped:
        raise
    except Exception as error:
        raise Skipped(f"{what}: {type(error).__name__}: {str(error)[:100]}") from None
    finally:
        STAGE[0]("")


@dataclass(frozen=True)
class Check:
    """One rule. `judge` is called with a Library and returns, or raises one of the above."""

    id: str
    severity: str
    text: str  # of TEXTS, or "practice"
    rule: str
    judge: Callable[[Any], None]
    ends: bool = False  # the end of the process belongs to the check: it has to be a clean one

    @property
    def subject(self) -> str:
        """What the check tests: a producer, a consumer, or both."""
        return {"C": "consumer", "R": "both"}.get(self.id[0], "producer")

    def explain(self) -> str:
        title, url, sentence = quoted(self.text)
        doc = " ".join((self.judge.__doc__ or "").split())
        return "\n".join(filter(None, (f"{self.id} {self.severity}: {self.rule}",
                                       f"  {title}" + (f": “{sentence}”" if sentence else ""),
                                       f"  {url}" if url else "",
                                       f"  {doc}" if doc else "")))


CHECKS: dict[str, Check] = {}


def check(name: str, severity: str, text: str, rule: str, judge: _Judge | None = None,
          ends: bool = False) -> Any:
    """Registers a function as a check: it raises, or returns the text of a violation. Identifiers
    are never reused for another rule, and a MUST has a sentence of a standard."""
    assert severity in SEVERITIES and name not in CHECKS, name
    assert text in TEXTS or (text == PRACTICE and severity != "MUST"), name

    def register(judge: _Judge) -> _Judge:
        @wraps(judge)
        def judged(library: Any) -> None:
            said = judge(library)
            if isinstance(said, str):
                raise Failed(said)

        CHECKS[name] = Check(name, severity, text, rule, judged, ends)
        return judge

    return register if judge is None else register(judge)


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
