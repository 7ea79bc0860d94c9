#!/usr/bin/env python3
"""Prints what the released files contain, as SPDX 2.3: sbom.py VERSION FILE...

Each file contains the crates that a build with all features links, by the lock file: ours as one
package, the others with their checksums. SOURCE_DATE_EPOCH is the date of the document.
"""

import datetime
import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADER = {"name": "dlpack.h", "version": "1.3", "license": "Apache-2.0",
          "repository": "https://github.com/dmlc/dlpack"}


def linked():
    """The crates from elsewhere that the library links, as cargo describes them."""
    out = subprocess.run(
        ["cargo", "metadata", "--format-version", "1", "--locked", "--all-features"],
        cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True).stdout
    metadata = json.loads(out)
    packages = {package["id"]: package for package in metadata["packages"]}
    uses = {node["id"]: [d["pkg"] for d in node["deps"]
                         if any(kind["kind"] is None for kind in d["dep_kinds"])]
            for node in metadata["resolve"]["nodes"]}
    todo = [p for p in packages if packages[p]["name"] == "dlpack_rs_cdylib"]
    seen = set()
    while todo:
        one = todo.pop()
        if one not in seen:
            seen.add(one)
            todo += uses[one]
    return sorted((packages[p] for p in seen if packages[p]["source"]), key=lambda p: p["name"])


def package(identifier, name, version, license, location, checksum=None):
    sums = [{"algorithm": "SHA256", "checksumValue": checksum}] if checksum else []
    return {"SPDXID": identifier, "name": name, "versionInfo": version, "checksums": sums,
            "downloadLocation": location, "filesAnalyzed": False, "licenseConcluded": "NOASSERTION",
            "licenseDeclared": license, "copyrightText": "NOASSERTION"}


def relation(one, kind, other):
    return {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}


def main(version, *files):
    locked = dict(re.findall(r'name = "(.+)"\nversion = .+\nsource = .+\nchecksum = "(.+)"',
                             (ROOT / "Cargo.lock").read_text()))
    repository = re.search(r'repository = "(.+)"', (ROOT / "Cargo.toml").read_text())[1]
    packages = [package("SPDXRef-dlpack.h", HEADER["name"], HEADER["version"], HEADER["license"],
                        HEADER["repository"])]
    packages += [package("SPDXRef-" + crate["name"], crate["name"], crate["version"],
                         crate["license"].replace("/", " OR "),
                         f"https://crates.io/crates/{crate['name']}/{crate['version']}",
                         locked[crate["name"]]) for crate in linked()]
    parts = [part["SPDXID"] for part in packages]
    relations = []
    for number, file in enumerate(files):
        identifier = f"SPDXRef-file-{number}"
        packages.append(package(identifier, Path(file).name, version, "Apache-2.0", repository,
                                hashlib.sha256(Path(file).read_bytes()).hexdigest()))
        relations.append(relation("SPDXRef-DOCUMENT", "DESCRIBES", identifier))
        relations += [relation(identifier, "CONTAINS", part) for part in parts]
    date = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    print(json.dumps({
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"dlpack_rs-{version}", "documentNamespace": f"{repository}/spdx/{version}",
        "creationInfo": {"created": date.strftime("%Y-%m-%dT%H:%M:%SZ"),
                         "creators": ["Tool: packaging/sbom.py"]},
        "packages": packages, "relationships": relations}, indent=1))


if __name__ == "__main__":
    main(*sys.argv[1:])
