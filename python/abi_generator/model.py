"""The declarations of the headers, with their comments."""

import re

from . import c
from .header import Header

# Macros that form a group: its class of dlpack_rs.abi.enums, and its members, by their names and
# the comments behind them.
MACROS = {
    "TensorFlags": ("IntFlag", r"DLPACK_FLAG_BITMASK_(\w+)", "`flags` of a managed tensor."),
    "CopyFlags": ("IntFlag", r"DLRS_COPY_(\w+)", "`flags` of dlrs_copy_options."),
    "NormalizeFlags": ("IntFlag", r"DLRS_NORMALIZE_(\w+)", "What DLRS_VIEW_NORMALIZE does."),
    "Equal": ("IntEnum", r"DLRS_EQUAL_(\w+)", "How dlrs_equal compares."),
    "NewerDataTypeCode": ("IntEnum", r"DLRS_CODE_(\w+)(?=: Dtype code)",
                          "Dtype codes newer than DLPack 1.3."),
    "NewerDeviceType": ("IntEnum", r"DLRS_CODE_(\w+)(?=: Device type)",
                        "Device types newer than DLPack 1.3."),
    "AttachWhen": ("IntEnum", r"DLRS_((?:BEFORE|AFTER)_FREE)", "When what is attached is called."),
    "PyImportFlags": ("IntFlag", r"DLRS_PY_(LEGACY_WRITABLE)",
                      "`flags` of dlrs_py_import_options."),
    "PyProtocols": ("IntFlag",
                    "DLRS_PY_(EXCHANGE_API|DUNDER_DLPACK|CAPSULE|BUFFER|ARRAY_INTERFACE)",
                    "`protocols` of dlrs_py_import_options."),
}


class Model:
    """Structs, callbacks, functions and constants, in the order of the output."""

    def __init__(self, cdef, headers, prototypes):
        found = c.Declarations(cdef)
        self.cdef, self.header, self.tags = cdef, Header(headers, prototypes), found.tags
        self.typedefs = dict(sorted(found.typedefs.items()))
        self.structs = {}
        for ctype in [*self.typedefs.values(), *dict(sorted(found.tags.items())).values()]:
            if ctype.kind == "struct":
                self._struct(ctype)
        self.callbacks = dict(self._callbacks())
        self.functions = {name: found.functions[name] for name in sorted(self.header.prototypes)}
        self.constants = dict(sorted(found.constants.items()))

    @staticmethod
    def name(ctype):
        return ctype.cname.replace("struct ", "")

    def _struct(self, ctype):
        """Registers a struct, after those that it has by value or that its members point to."""
        if self.name(ctype) in self.structs or ctype.fields is None:
            return
        self.structs[self.name(ctype)] = None  # in progress
        for _, field in ctype.fields:
            inner = field.type
            while inner.kind in ("pointer", "array"):
                inner = inner.item
            if inner.kind == "struct":
                self._struct(inner)
        del self.structs[self.name(ctype)]
        self.structs[self.name(ctype)] = ctype

    def _callbacks(self):
        """(name, type): typedefs, and function pointers of structs and of callbacks."""
        typed = set(self.typedefs.values())
        for name, ctype in self.typedefs.items():
            if ctype.kind == "function":
                yield name, ctype
                for parameter, argument in zip(self.header.parameters[name], ctype.args):
                    if argument.kind == "function" and argument not in typed:
                        yield f"{name.removesuffix('_fn')}_{parameter}_fn", argument
        for struct, ctype in self.structs.items():
            for member, field in ctype.fields:
                if field.type.kind == "function" and field.type not in typed:
                    yield f"{struct}_{member}_fn", field.type

    def callback_of(self, ctype, owner, member):
        """The name of the type of a function pointer: a typedef's, or that of its member."""
        place = f"{owner.removesuffix('_fn')}_{member}_fn"
        return place if place in self.callbacks else next(
            (name for name, other in self.callbacks.items() if other == ctype), None)

    def is_python(self, function):
        """Whether the pointers to void of a function are Python objects."""
        return function.startswith("dlrs_py_")

    def enums(self):
        """(class, kind, documentation, {member: (constant, comment)})"""
        tags = re.findall(r"^enum (\w+)", self.cdef, re.M)
        for name in [*(n for n, t in self.typedefs.items() if t.kind == "enum"), *tags]:
            ctype = self.tags[f"enum {name}"] if name in tags else self.typedefs[name]
            members = list(ctype.relements)
            prefix = "kDL" if name.startswith("DL") else _prefix(members)
            camel = "".join(w.capitalize() for w in name.removeprefix("dlrs_").split("_"))
            title = name.removeprefix("DL") if prefix == "kDL" else camel
            yield title, "IntEnum", self.header.docs[name], {
                member.removeprefix(prefix): (member, self.header.enumerators[member])
                for member in sorted(members, key=self.constants.get)}
        for title, (kind, pattern, doc) in MACROS.items():
            texts = {name: f"{name}: {self.header.docs.get(name, '')}" for name in self.constants
                     if name not in self.header.enumerators}
            found = [(name, re.fullmatch(f"{pattern}: .*", text, re.S))
                     for name, text in texts.items()]
            members = {match[1]: (name, self.header.docs[name]) for name, match in found if match}
            values = {member: self.constants[members[member][0]] for member in members}
            yield title, kind, doc, {m: members[m] for m in sorted(members, key=values.get)}


def _prefix(names):
    """The common prefix of all names, up to an underscore."""
    common = 0
    while len({name[:common + 1] for name in names}) == 1:
        common += 1
    return names[0][:names[0].rfind("_", 0, common) + 1]
