"""What most checks rest on. A library that lacks it violates one rule, not all: the checks that
fail for that reason are skipped, and name the check that judges it."""

from ._memory import Handmade, newest, taken
from ._model import CHECKS, VIOLATIONS, Check, Failed, Unfreed, must
from ._producers import made


def _made(library):
    must(hasattr(made(library), "__dlpack__"), "no __dlpack__")


def _readable(library):
    newest(made(library)).values()


def _taken(library):
    library.values(taken(library, Handmade()))


def _cause(name, judge, outcomes=VIOLATIONS):
    return Check(name, "MUST", CHECKS[name].text, CHECKS[name].rule, judge), outcomes


# In the order in which they are to be mended: what explains one does not depend on the next.
_PRODUCER = (_cause("P01", _made), _cause("P65", CHECKS["P65"].judge, ("fail",)),
             _cause("P41", _readable))
_CONSUMER = (_cause("C01", _taken),)

CAUSES = {cause.id: cause for cause, _ in _PRODUCER + _CONSUMER}


def causes(check):
    """`(check, outcomes)`: an outcome of this check explains any violation of the given one."""
    found = {"producer": _PRODUCER, "consumer": _CONSUMER, "both": _PRODUCER + _CONSUMER}
    for cause, outcomes in found[check.subject]:
        if cause.id == check.id:
            return
        yield cause, outcomes


def unfreed(library, check, failure):
    """The check that judges why a tensor is not freed once, if not this one."""
    for name, explains in (("C10", Unfreed),) if failure.refused else (("C03", Failed),
                                                                       ("C04", Unfreed)):
        if check.id == name or (check.id, name) == ("C01", "C04"):
            continue
        try:
            CHECKS[name].judge(library)
        except explains:
            return name
        except Exception:
            pass
    return ""
