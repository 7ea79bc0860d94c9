"""The sentences that checks rest on: document, the version that has it first, and its words.

The array API standard by its year, dlpack.h and DLPack's Python specification by DLPack's version.
"""

from __future__ import annotations

from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_API = "https://data-apis.org/array-api/{}/API_specification/generated/array_api."
DOCUMENTS = {
    "__dlpack__": ("array API standard, __dlpack__", _API + "array.__dlpack__.html"),
    "__dlpack_device__": ("array API standard, __dlpack_device__",
                          _API + "array.__dlpack_device__.html"),
    "from_dlpack": ("array API standard, from_dlpack", _API + "from_dlpack.html"),
    "python": ("DLPack, Python Specification",
               "https://dmlc.github.io/dlpack/latest/python_spec.html"),
    "dlpack.h": ("dlpack.h", "https://github.com/dmlc/dlpack/blob/v{}/include/dlpack/dlpack.h"),
}
# The years of the standard, and the newest DLPack that was there.
STANDARDS = {"2021.12": (0, 5), "2022.12": (0, 7), "2023.12": (1, 0), "2024.12": (1, 1),
             "2025.12": (1, 3)}


def _sentences() -> Iterator[tuple[str, tuple[str, str, str]]]:
    """Of sentences.txt: "== document, since", then "key: sentence"."""
    for line in Path(__file__).with_name("sentences.txt").read_text("utf-8").splitlines():
        if line.startswith("=="):
            _, document, since = line.split()
        else:
            key, _, sentence = line.partition(": ")
            yield key, (document, since, sentence)


TEXTS = dict(_sentences())
PRACTICE = "practice"


def number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def asked(text: str, standard: str) -> bool:
    """Whether a year of the standard, and the DLPack of its time, have the sentence."""
    if text == PRACTICE:
        return True
    document, since, _ = TEXTS[text]
    if document in ("python", "dlpack.h"):
        return number(since) <= STANDARDS[standard]
    return number(since) <= number(standard)


def quoted(text: str) -> tuple[str, str, str]:
    """`(document and version, address, sentence)`."""
    if text == PRACTICE:
        return "practice: no text says so, programs in use rely on it", "", ""
    document, since, sentence = TEXTS[text]
    title, url = DOCUMENTS[document]
    # Tags of versions before 0.5 have other files.
    tag = max("0.6", since) if document == "dlpack.h" else since
    return f"{title} {since}", url.format(tag), sentence
