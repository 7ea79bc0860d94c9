"""Verdicts as text, JSON, JUnit's XML and Markdown."""

import json
from xml.etree import ElementTree as xml

from ._model import SEVERITIES, SOURCES, VIOLATIONS


def violations(report):
    """Verdicts that count against the library, by severity."""
    found = [verdict for verdict in report.verdicts if verdict.violation]
    return {severity: [verdict for verdict in found if verdict.check.severity == severity]
            for severity in SEVERITIES}


def text(report, known, colour=False):
    def paint(word, code):
        return f"\x1b[{code}m{word}\x1b[0m" if colour else word

    lines = []
    for verdict in report.verdicts:
        if not verdict.violation:
            continue
        check = verdict.check
        mark = "known" if check.id in known else verdict.outcome
        lines.append(f"{paint(mark, '31' if mark != 'known' else '2'):5} {check.id} "
                     f"{check.severity:6} {check.rule}: {' '.join(verdict.text.split())}")
    counts = ", ".join(f"{report.count(outcome)} {outcome}"
                       for outcome in ("pass", "note", "skip", *VIOLATIONS)
                       if report.count(outcome))
    by = ", ".join(f"{len(found)} {severity}" for severity, found in violations(report).items())
    lines.append(f"{report.name} {report.version}: {counts or 'no checks'}; violations: {by}")
    return "\n".join(lines)


def as_json(report, known):
    return json.dumps({
        "library": report.name, "version": report.version,
        "checks": [{"id": verdict.check.id, "severity": verdict.check.severity,
                    "source": SOURCES[verdict.check.source][0], "rule": verdict.check.rule,
                    "outcome": verdict.outcome, "text": verdict.text,
                    "known": verdict.check.id in known} for verdict in report.verdicts]},
        indent=1)


def junit(report, known):
    counted = [verdict for verdict in report.verdicts if verdict.counts
               and verdict.check.id not in known]
    suite = xml.Element("testsuite", name=f"DLPack conformance of {report.name}",
                        tests=str(len(report.verdicts)), failures=str(len(counted)),
                        skipped=str(report.count("skip")))
    for verdict in report.verdicts:
        check = verdict.check
        case = xml.SubElement(suite, "testcase", classname=f"{report.name}.{check.severity}",
                              name=f"{check.id} {check.rule}")
        if verdict in counted:
            xml.SubElement(case, "failure", message=verdict.text, type=verdict.outcome)
        elif verdict.outcome == "skip" or verdict.violation:
            xml.SubElement(case, "skipped", message=verdict.text)
    xml.indent(suite)
    return xml.tostring(suite, encoding="unicode")


def markdown(report, known):
    lines = [f"# DLPack conformance of {report.name} {report.version}", "",
             "| check | severity | rule | verdict |", "| --- | --- | --- | --- |"]
    for verdict in report.verdicts:
        check = verdict.check
        said = verdict.text.replace("|", "\\|").replace("\n", " ")
        outcome = "known" if check.id in known and verdict.violation else verdict.outcome
        rule = check.rule.replace("|", "\\|")
        lines.append(f"| {check.id} | {check.severity} | {rule} | {outcome}"
                     f"{': ' + said if said else ''} |")
    return "\n".join(lines)
