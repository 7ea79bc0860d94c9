"""Verdicts as text, JSON, JUnit's XML and Markdown."""

import json
import re
from collections import Counter
from xml.etree import ElementTree as xml

from ._model import SEVERITIES, VIOLATIONS
from ._texts import quoted


def violations(report):
    """Verdicts that count against the library, by severity."""
    found = [verdict for verdict in report.verdicts if verdict.violation]
    return {severity: [verdict for verdict in found if verdict.check.severity == severity]
            for severity in SEVERITIES}


def text(report, known):
    lines = []
    for verdict in report.verdicts:
        if not verdict.violation:
            continue
        check = verdict.check
        mark = "known" if check.id in known else verdict.outcome
        lines.append(f"{mark:5} {check.id} {check.severity:6} {check.rule}: "
                     f"{' '.join(verdict.text.split())}")
    outcomes = Counter(verdict.outcome for verdict in report.verdicts)
    counts = ", ".join(f"{outcomes[outcome]} {outcome}"
                       for outcome in ("pass", "note", "skip", *VIOLATIONS) if outcomes[outcome])
    by = ", ".join(f"{len(found)} {severity}" for severity, found in violations(report).items())
    lines.append(f"{report.name} {report.version}: {counts or 'no checks'}; violations: {by}")
    return "\n".join(lines)


def as_json(report, known):
    return json.dumps({
        "library": report.name, "version": report.version,
        "checks": [{"id": verdict.check.id, "severity": verdict.check.severity,
                    **dict(zip(("document", "url", "sentence"), quoted(verdict.check.text))),
                    "rule": verdict.check.rule,
                    "outcome": verdict.outcome, "text": verdict.text,
                    "known": verdict.check.id in known} for verdict in report.verdicts]},
        indent=1)


def new(report, known):
    """Violations that count and are not known."""
    return [verdict for verdict in report.verdicts
            if verdict.counts and verdict.check.id not in known]


def gone(report, known):
    """Known violations that are none any more."""
    return [verdict for verdict in report.verdicts
            if verdict.check.id in known and verdict.outcome in ("pass", "note")]


def junit(report, known):
    """Its failures are what the exit status tells."""
    counted, passed = new(report, known), gone(report, known)
    skipped = [verdict for verdict in report.verdicts if verdict not in counted
               and (verdict.violation or verdict.outcome == "skip")]
    suite = xml.Element("testsuite", name=f"DLPack conformance of {report.name}",
                        tests=str(len(report.verdicts)), errors="0",
                        failures=str(len(counted) + len(passed)), skipped=str(len(skipped)))
    for verdict in report.verdicts:
        check = verdict.check
        case = xml.SubElement(suite, "testcase", classname=f"{report.name}.{check.severity}",
                              name=f"{check.id} {check.rule}")
        if verdict in counted:
            failure = xml.SubElement(case, "failure", message=verdict.text, type=verdict.outcome)
            failure.text = check.explain()
        elif verdict in passed:
            xml.SubElement(case, "failure", message="known, and passes", type="known")
        elif verdict in skipped:
            mark = "known: " if check.id in known and verdict.violation else ""
            xml.SubElement(case, "skipped", message=mark + verdict.text)
    xml.indent(suite)
    return xml.tostring(suite, encoding="us-ascii", xml_declaration=True).decode()


def literal(said):
    """Text that Markdown shows as it is, in a cell of a table."""
    return re.sub(r"([\\`*_{}\[\]<>&|~#])", r"\\\1", " ".join(said.split()))


def markdown(report, known):
    title = literal(f"DLPack conformance of {report.name} {report.version}")
    lines = [f"# {title}", "",
             "| check | severity | rule | verdict |", "| --- | --- | --- | --- |"]
    for verdict in report.verdicts:
        check = verdict.check
        said = literal(verdict.text)
        outcome = "known" if check.id in known and verdict.violation else verdict.outcome
        lines.append(f"| {check.id} | {check.severity} | {literal(check.rule)} | {outcome}"
                     f"{': ' + said if said else ''} |")
    return "\n".join(lines)
