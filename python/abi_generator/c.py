"""The part of C that `_headers.cdef` leaves: structs, enums, typedefs, prototypes and numbers.

Types are as those of cffi: a pointer to a function has the kind "function".
"""

import re
from types import SimpleNamespace

_TOKEN = re.compile(r"\w+|-?\d+|[^\s\w]")
_PRIMITIVE = {"char", "int", "float", "double", "size_t", "uintptr_t", "ptrdiff_t",
              *(f"{u}int{n}_t" for u in ("", "u") for n in (8, 16, 32, 64))}


class Type:
    """A type; two of the same spelling are equal."""

    def __init__(self, kind, cname, **parts):
        self.kind, self.cname = kind, cname
        vars(self).update(parts)

    def __eq__(self, other):
        return self.cname == other.cname

    def __hash__(self):
        return hash(self.cname)


def pointer(item):
    if item.kind == "function":
        return item
    return Type("pointer", f"{item.cname} *", item=item)


def array(item, length):
    return Type("array", f"{item.cname}[{length}]", item=item, length=length)


def function(result, args):
    spelled = ", ".join(argument.cname for argument in args)
    return Type("function", f"{result.cname}(*)({spelled})", result=result, args=args)


class Declarations:
    """typedefs, tags, functions and constants of a text of declarations."""

    def __init__(self, text):
        self.typedefs, self.tags, self.functions, self.constants = {}, {}, {}, {}
        for name, value in re.findall(r"^#define (\w+) (-?\d+)$", text, re.M):
            self.constants[name] = int(value)
        self.tokens = _TOKEN.findall(re.sub(r"^#.*", "", text, flags=re.M))[::-1]
        while self.tokens:
            self.declaration()

    def declaration(self):
        typedef = self.skip("typedef")
        base = self.base()
        if not self.skip(";"):
            name, kind = self.declarator(base)
            if typedef:
                self.typedefs[name] = kind
                if kind is base and not kind.cname:  # it has no tag, but this name
                    kind.cname = name
            else:
                self.functions[name] = kind
            self.take(";")

    def next(self):
        return self.tokens[-1]

    def skip(self, token):
        found = self.next() == token
        if found:
            self.tokens.pop()
        return found

    def take(self, token):
        if not self.skip(token):
            raise SystemExit(f"abi_generator: {self.next()} where {token} belongs")

    def base(self):
        """The type before a declarator."""
        self.skip("const")
        word = self.tokens.pop()
        if word in ("struct", "enum"):
            tag = "" if self.next() == "{" else self.tokens.pop()
            return self.enum(tag) if word == "enum" else self.struct(tag)
        self.skip("const")
        if word == "void":
            return Type("void", "void")
        return Type("primitive", word) if word in _PRIMITIVE else self.typedefs[word]

    def struct(self, tag):
        kind = self.tags.get(tag) or Type("struct", tag and f"struct {tag}", fields=None)
        if tag:
            self.tags[tag] = kind
        if self.skip("{"):
            kind.fields = []
            while not self.skip("}"):
                name, member = self.declarator(self.base())
                kind.fields.append((name, SimpleNamespace(type=member)))
                self.take(";")
        return kind

    def enum(self, tag):
        kind = Type("enum", tag and f"enum {tag}", relements={})
        if tag:
            self.tags[f"enum {tag}"] = kind
        self.take("{")
        while not self.skip("}"):
            name = self.tokens.pop()
            self.take("=")
            sign = -1 if self.skip("-") else 1
            kind.relements[name] = sign * int(self.tokens.pop().rstrip("U"), 0)
            self.skip(",")
        self.constants.update(kind.relements)
        return kind

    def declarator(self, kind):
        """(name, type) of a declarator; "" for a parameter without a name."""
        while self.skip("*"):
            kind = pointer(kind)
            self.skip("const")
        if self.next() == "(":  # a pointer to a function
            self.take("(")
            self.take("*")
            name = self.tokens.pop()
            self.take(")")
            return name, function(kind, self.parameters())
        name = self.tokens.pop() if re.match(r"\w", self.next()) else ""
        if self.next() == "(":
            kind = function(kind, self.parameters())
        elif self.skip("["):
            length = self.tokens.pop()
            kind = array(kind, self.constants[length] if length in self.constants else int(length))
            self.take("]")
        return name, kind

    def parameters(self):
        kinds = []
        self.take("(")
        while not self.skip(")"):
            kinds.append(self.declarator(self.base())[1])
            self.skip(",")
        return [] if [kind.kind for kind in kinds] == ["void"] else kinds
