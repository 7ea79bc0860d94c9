"""What most checks rest on. A library that lacks it violates one rule, not all: the checks that
rest on it are skipped, and name the check that judges it."""

from ._exports import newest
from ._libraries import Library
from ._model import CHECKS, STAGE, Failed, Skipped, Unfreed, findings, must, said
from ._producers import made
from ._taking import taken
from ._tensors import Handmade


def _made(library):
    must(hasattr(made(library), "__dlpack__"), "no __dlpack__")


def _named(library):
    CHECKS["P65"].judge(library)


def _readable(library):
    newest(made(library)).values()


def _taken(library):
    library.values(taken(library, Handmade()))


# In the order in which they are to be mended: none rests on the next.
_PRODUCER = {"P01": _made, "P65": _named, "P41": _readable}
_CONSUMER = {"C01": _taken}
_CAUSES = {"producer": _PRODUCER, "consumer": _CONSUMER, "both": {**_PRODUCER, **_CONSUMER}}


def unmet(library, check):
    """Which check judges what this one rests on, and what it finds; "" where that is there. Devices
    are not asked: a library may have tensors on them alone."""
    known = findings(library)
    for name, cause in _CAUSES[check.subject].items() if check.id[0] != "D" else ():
        if name == check.id:
            break
        stage = f"{name} judges it"
        if stage not in known:
            STAGE[0](stage)
            known[stage] = ""
            try:
                cause(library)
            except Skipped:
                pass
            except Failed as failure:
                known[stage] = f"{stage}: {failure}"
            except Exception as error:
                known[stage] = f"{stage}: {said(error)}"
            STAGE[0]("")
        if known[stage]:
            return known[stage]
    return ""


def unfreed(library, check, failure):
    """The check that judges why a tensor is not freed once, if not this one."""
    causes = {"C10": Unfreed} if failure.refused else {"C03": Failed, "C04": Unfreed}
    if library.make is not None and (
            check.id[0] == "R" or type(library).values is Library.values):  # it was exported
        causes = {"P30": Failed, "P32": Failed, **causes}
    known = findings(library)
    for name, explains in causes.items():
        if check.id == name or (check.id, name) == ("C01", "C04"):
            continue
        if (key := f"{name} explains") not in known:
            known[key] = False
            try:
                CHECKS[name].judge(library)
            except explains:
                known[key] = True
            except Exception:
                pass
        if known[key]:
            return name
    return ""
