"""Runs the checks of one system in its environment, except completed ones: cell.py SYSTEM KNOWN...

Prints a line of JSON before and after each check, so that the reader can tell which check killed
the process.
"""

import importlib
import json
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import checks  # noqa: E402
import hooks  # noqa: E402
from checks import CHECKS, Refused, Skip, Wrong  # noqa: E402


def say(**words):
    print(json.dumps(words), flush=True)


def judged(check, function, system):
    """(result, text) of a check; the verdict of the table of consumers must match the outcome."""
    checks.verdict = None
    result, text = run(function, system)
    if result == "wrong" and check in getattr(system, "FAULTS", ()):
        result, text = "fault", f"{system.FAULTS[check]} ({text})"
    if result not in ("wrong", "skip"):
        try:
            checks.must_be_foretold(check, result, text)
        except Wrong as wrong:
            return "wrong", str(wrong)
    return result, text


def run(check, system):
    try:
        return "ok", check(system)
    except Skip:
        return "skip", ""
    except Refused as refusal:
        return "refused", str(refusal)
    except Exception as error:
        return "wrong", f"{type(error).__name__}: {error}"


def main():
    warnings.filterwarnings("ignore")
    name, *known = sys.argv[1:]
    system = importlib.import_module(f"systems.{name}")
    say(version=hooks.version(system))
    wanted = {**getattr(system, "CHECKS", CHECKS), **getattr(system, "MORE", {})}
    for check, function in wanted.items():
        if check not in known:
            say(started=check, fault=getattr(system, "FAULTS", {}).get(check))
            result, text = judged(check, function, system)
            say(check=check, result=result, text=" ".join(text.split())[:400])
    checks.keep_some(system)
    say(finished=True)


if __name__ == "__main__":
    main()
