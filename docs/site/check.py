#!/usr/bin/env python3
"""Looks at the built site: every link inside of it leads to a page and an anchor, those into the
repository to a file; search knows each function, status code and term of the glossary; each
question has its answer one click from the front page; and how many words there are beside the
reference."""

import html.parser
import json
import re
import sys
from pathlib import Path
from urllib.parse import unquote, urldefrag

ROOT = Path(__file__).resolve().parent.parent.parent
REPOSITORY = "https://github.com/libdlpack-rs/libdlpack_rs/blob/main/"
MOST_WORDS = 35_000
REFERENCE = ("c/", "status/", "changelog")
# Questions, the page and heading that answer them, and what the answer has to name. The front page
# links to each. Without a heading it is the whole page.
QUESTIONS = (
    ("who frees what", "concepts.html#who-owns-what", ("_take", "dlrs_release", "deleter")),
    ("export my memory", "howto/export.html#export-memory", ("dlrs_tensor_wrap", "free")),
    ("legacy or versioned", "howto/versions.html#legacy-and-versioned",
     ("max_version", "dlrs_from_legacy_take", "dlrs_to_legacy_take")),
    ("was it copied", "howto/copied.html#was-it-copied",
     ("DLPACK_FLAG_BITMASK_IS_COPIED", "copy=False")),
    ("GPU to CPU asynchronously", "howto/async.html#asynchronous-copies",
     ("DLRS_COPY_ASYNC", "dlrs_release_after_take", "dlrs_stream_sync", "kDLCUDAHost")),
    ("plug in a device", "howto/backend.html#a-device-of-your-own",
     ("dlrs_backend_set", "dlrs_byte_plan", "opencl_backend.c")),
    ("read-only data", "howto/read_only.html#read-only-data",
     ("DLPACK_FLAG_BITMASK_READ_ONLY", "DLRS_LEGACY_COPY")),
    ("round trips through JAX", "howto/read_only.html#round-trips-through-jax-and-tensorflow",
     ("prepare(x, \"jax\"",)),
    ("between processes", "howto/processes.html#between-processes",
     ("F_SEAL_SHRINK", "MSG_CTRUNC", "track=False", "buffer_callback")),
    ("static on Windows", "howto/linking.html#static-on-windows", ("DLRS_STATIC",)),
    ("error codes", "status/index.html", ("DLRS_NULL_ARG", "DLRS_READ_ONLY", "DLRS_CTX_LOST")),
    ("threads, fork, unload", "howto/threads.html#threads-fork-unload",
     ("thread-safe", "DLRS_FORKED", "dlclose")),
    ("ABI promises", "ABI.html#functions", ("SONAME", "libdlpack_rs.so.1")),
    ("extension against the wheel", "howto/extension.html#build-against-the-wheel",
     ("python -m dlpack_rs cflags", "cmakedir")),
    ("which Rust", "howto/requirements.html#requirements", ("Rust 1.95", "CPython 3.9", "C99")),
)


class Page(html.parser.HTMLParser):
    """Links and anchors of one page, and the texts of its sections by their anchors."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors, self.texts, self.open = [], set(), {}, []
        self.feed(text)

    def handle_data(self, data):
        for section in self.open:
            self.texts[section] = self.texts.get(section, "") + data

    def handle_endtag(self, tag):
        if tag == "section":
            self.open.pop()

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.anchors.add(attributes.get("id"))
        if tag == "section":
            self.open.append(attributes.get("id"))
        if tag == "a" and attributes.get("href"):
            self.links.append(attributes["href"])


def links(site):
    """What is wrong with the links."""
    pages = {file: Page(file.read_text()) for file in site.rglob("*.html")}
    for file, page in pages.items():
        for link in page.links:
            target, anchor = urldefrag(unquote(link))
            where = f"{file.relative_to(site)}: {link}"
            if target.startswith(REPOSITORY):
                if not (ROOT / target[len(REPOSITORY):]).exists():
                    yield f"{where}: no such file in the repository"
            elif "://" not in target and not target.startswith("mailto:"):
                there = (file.parent / target).resolve() if target else file
                if not there.is_file():
                    yield f"{where}: no such page"
                elif anchor and there in pages and anchor not in pages[there].anchors:
                    yield f"{where}: no such anchor"


def searched(site):
    """What search does not find."""
    text = (site / "searchindex.js").read_text()
    index = json.loads(text[text.index("(") + 1:text.rindex(")")])
    objects = {row[4] if isinstance(row, list) and len(row) > 4 and row[4] else name
               for group in index["objects"].values() for name, row in
               (group.items() if isinstance(group, dict) else ((row[4], row) for row in group))}
    titles = " ".join(index["alltitles"])
    terms = set(index["terms"]) | set(index["titleterms"])
    for line in (ROOT / "include/exports.txt").read_text().splitlines():
        name = line.split()[0]
        if name not in objects:
            yield f"search: the function {name}"
    for name in re.findall(r"^## (DLRS_\w+)", (ROOT / "docs/status.md").read_text(), re.M):
        if name not in titles:
            yield f"search: the status {name}"
    # Sphinx keeps stems: the first letters of the first word tell them.
    for row in re.findall(r"^\| ([a-z][^|]*?) \|", (ROOT / "docs/glossary.md").read_text(), re.M):
        word = re.split(r"\W+", row)[0].lower()
        if word != "term" and not any(term.startswith(word[:3]) for term in terms):
            yield f"search: the term {row}"


def answered(site):
    """Questions whose answer the front page does not link to, or which is not there."""
    links = Page((site / "index.html").read_text()).links
    for question, answer, named in QUESTIONS:
        page, anchor = urldefrag(answer)
        texts = Page((site / page).read_text()).texts if (site / page).is_file() else {}
        text = texts.get(anchor, "") if anchor else " ".join(texts.values())
        if answer not in links:
            yield f"question: {question}: the front page has no link to {answer}"
        for name in named:
            if name not in text:
                yield f"question: {question}: {answer} does not name {name}"


def hidden(site):
    """Pages whose code would run over the edge of a narrow page: those without our style sheet."""
    style = (site / "_static/site.css").read_text()
    if not re.search(r"pre \{[^}]*white-space: pre-wrap;[^}]*overflow-wrap: anywhere;", style):
        yield "site.css does not break long lines of code"
    for file in site.rglob("*.html"):
        text = file.read_text()
        if "<pre" in text and "_static/site.css" not in text:
            yield f"{file.relative_to(site)}: no site.css"


def words(source):
    """The number of words beside the reference."""
    return sum(len(re.sub(r"```\{raw\}.*?```", "", file.read_text(), flags=re.S).split())
               for file in source.rglob("*.md")
               if not str(file.relative_to(source)).startswith(REFERENCE))


def main(source, site):
    source, site = Path(source).resolve(), Path(site).resolve()
    wrong = [*links(site), *searched(site), *answered(site), *hidden(site)]
    count = words(source)
    if count > MOST_WORDS:
        wrong.append(f"{count} words beside the reference, where {MOST_WORDS} are the limit")
    for line in wrong:
        print(f"FAIL  {line}")
    print(f"{len(list(site.rglob('*.html')))} pages, {count} words beside the reference, "
          f"{len(QUESTIONS)} questions")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
