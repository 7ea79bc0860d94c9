"""The parts of the headers that a C parser drops: comments, names of parameters, and macros."""

import re
import runpy
from pathlib import Path

ABI = Path(__file__).resolve().parents[1] / "dlpack_rs" / "abi"
headers = runpy.run_path(str(ABI / "_headers.py"))
words = headers["words"]
_COMMENT = r"/\*\*((?:(?!\*/).)*)\*/\s*"
_POINTER = r"\(\*(\w+)\)\s*\((.*)\)\s*$"
# C++ has another opening of an enum.
_TWICE = re.compile(r"#ifdef __cplusplus\ntypedef enum : int32_t \{\n#else\n(.*?\n)#endif\n", re.S)


def parameters(text):
    """Parameter names, from the text between the parentheses of a prototype."""
    depth, parts = 0, [""]
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    pointers = [re.search(_POINTER, part, re.S) for part in parts]
    names = [found[1] if found else re.search(r"(\w*)\s*$", part)[1]
             for found, part in zip(pointers, parts)]
    return [] if names in ([""], ["void"]) else names


class Header:
    """Both headers; comments by the name that they document."""

    def __init__(self, text, prototypes):
        text = _TWICE.sub(r"\1", text)
        self.parameters, self.docs, self.fields = {}, {}, {}
        self.enumerators = {name: words(doc) for doc, name in
                            re.findall(_COMMENT + r"(\w+) = ", text, re.S)}
        for doc, name in re.findall(_COMMENT + r"#define (\w+)", text, re.S):
            self.docs[name] = words(doc)
        self.prototypes = {name: prototype for name, (prototype, _) in prototypes.items()}
        for name, (prototype, doc) in prototypes.items():
            self.docs[name] = doc
            self.parameters[name] = parameters(prototype.partition("(")[2].removesuffix(");"))
        typedefs = _COMMENT + r"typedef [^;(]*?\(\*(\w+)\)\s*\((.*?)\);"
        for doc, name, list_ in re.findall(typedefs, text, re.S):
            self.docs[name], self.parameters[name] = words(doc), parameters(list_)
            for inner, of_inner in re.findall(r"\(\*(\w+)\)\s*\(([^()]*)\)", list_):
                self.parameters[f"{name.removesuffix('_fn')}_{inner}_fn"] = parameters(of_inner)
        structs = _COMMENT + r"(?:typedef )?(?:struct|enum) ?(\w*) ?\{\n(.*?)\n\} ?(\w*);"
        for doc, tag, body, name in re.findall(structs, text, re.S):
            self._struct(tag or name, doc, body)

    def _struct(self, name, doc, body):
        self.docs[name] = words(doc)
        for text, member in re.findall(_COMMENT + r"([^;]*);", body, re.S):
            pointer = re.search(_POINTER, member, re.S)
            field = pointer[1] if pointer else re.search(r"(\w+)(?:\[\w+\])?$", member)[1]
            self.fields[name, field] = words(text)
            if pointer:
                self.parameters[f"{name}_{field}_fn"] = parameters(pointer[2])
                self.docs[f"{name}_{field}_fn"] = words(text)
