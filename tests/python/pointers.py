"""Pointer arguments of every function of the header, generated from its declarations: the first
NULL that is not allowed is rejected, then the first misaligned one, before any other error; and a
variable for a result is NULL afterwards."""

import ctypes as c

from dlpack_rs import abi
from dlpack_rs.abi import _declarations as header

# The bytes behind every pointer: no struct of ours, and no struct size, is valid.
BAD = 0x09
OPTIONAL_TYPES = ("dlrs_alloc_options", "dlrs_copy_options", "dlrs_import_options",
                  "dlrs_print_options", "dlrs_py_import_options", "dlrs_workers_options",
                  "dlrs_py_error_options", "c_ulong", "c_size_t")
# Others that may be NULL, by index. An array of extents is required where its count is nonzero.
OPTIONAL = {
    "dlrs_allocator_set": {2, 3}, "dlrs_backend_set": {2, 3}, "dlrs_copy_batch": {5},
    "dlrs_release_drain": {1}, "dlrs_tensor_new": {1},
    "dlrs_compact_strides": {1},
    "dlrs_view_as_strided": {2, 3}, "dlrs_view_reshape": {2}, "dlrs_view_expand": {2},
    "dlrs_view_permute": {2}, "dlrs_driver_path_set": {2}, "dlrs_strides_from_bytes": {1, 2, 5},
    "dlrs_strides_to_bytes": {1, 2, 5}, "dlrs_py_export": {2}, "dlrs_py_export_desc": {4},
    "dlrs_py_request_parse": {1},
}
# c_void_p that must not be NULL.
NEEDED = {
    "dlrs_fill": {2}, "dlrs_pointer_device": {2}, "dlrs_stream_destroy": {2},
    "dlrs_event_destroy": {2}, "dlrs_event_record": {2}, "dlrs_event_wait": {2},
    "dlrs_event_sync": {2}, "dlrs_mem_register_host": {2},
    "dlrs_mem_unregister_host": {2},
    "dlrs_py_capsule_consume": {1}, "dlrs_py_import": {1}, "dlrs_py_wrap": {3},
    "dlrs_py_export_desc": {3},
}
# Pointers to pointers that are inputs.
INPUTS = {"dlrs_copy_batch": {2, 3}, "dlrs_py_request_parse": {1}}
# Foreign handles, which stay unchanged.
UNTOUCHED = {"dlrs_stream_from_py": {3}}


def pointee(kind):
    """The target type of a POINTER, or None."""
    if kind is c.c_char_p:
        return c.c_char
    return getattr(kind, "_type_", None) if issubclass(kind, c._Pointer) else None


class Parameter:
    def __init__(self, function, place, kind):
        self.place, self.kind, self.points_to = place, kind, pointee(kind)
        self.is_pointer = self.points_to is not None or place in NEEDED.get(function, ())
        name = getattr(self.points_to, "__name__", "")
        self.needed = self.is_pointer and place not in OPTIONAL.get(function, ()) \
            and name not in OPTIONAL_TYPES
        self.align = c.alignment(self.points_to) if self.points_to not in (None, c.c_char) else 1
        to_pointer = self.points_to is c.c_void_p or pointee(self.points_to or int) is not None
        self.taken = to_pointer and function.endswith("_take") and place == 1
        others = INPUTS.get(function, set()) | UNTOUCHED.get(function, set())
        self.result = to_pointer and not self.taken and place not in others

    def number(self):
        if issubclass(self.kind, c.Structure):
            return self.kind.from_buffer_copy(bytes([99]) * c.sizeof(self.kind))
        return self.kind(None) if self.kind is c.c_void_p else self.kind(1)


def functions():
    for name, (_, *kinds) in sorted(header.FUNCTIONS.items()):
        if not kinds or pointee(kinds[-1]) is not header.dlrs_error:
            continue
        if name == "dlrs_error_forward":  # read up to its struct_size
            continue
        parameters = [Parameter(name, i + 1, kind) for i, kind in enumerate(kinds[:-1])]
        if any(parameter.is_pointer for parameter in parameters):
            yield name, parameters


class Call:
    """One call: each pointer is "good" (aligned, with invalid content), "null" or "odd"."""

    def __init__(self, name, parameters):
        self.name, self.parameters = name, parameters
        self.memory = {}

    def address(self, parameter, how):
        if how == "null":
            return 0
        memory = c.create_string_buffer(bytes([BAD]) * 4096, 4096)
        start = -c.addressof(memory) % 64
        self.memory[parameter.place] = memory
        at = c.addressof(memory) + start + (1 if how == "odd" else 0)
        if parameter.taken and how == "good":  # not a valid tensor
            c.c_size_t.from_address(at).value = at + 64
        return at

    def run(self, hows):
        arguments, results = [], []
        for parameter in self.parameters:
            if not parameter.is_pointer:
                arguments.append(parameter.number())
                continue
            how = hows.get(parameter.place, "good")
            at = self.address(parameter, how)
            arguments.append(c.c_void_p(at))
            if parameter.result and how == "good":
                results.append(at)
        error = header.dlrs_error(struct_size=c.sizeof(header.dlrs_error))
        function = getattr(c.CDLL(abi.lib._name), self.name)
        function.argtypes = [type(argument) for argument in arguments] + [c.c_void_p]
        status = function(*arguments, c.byref(error))
        for at in results:
            assert c.c_size_t.from_address(at).value == 0, (self.name, hows, "result is not NULL")
        return status, error.argument


def check(name, parameters):
    """Whether the function refuses each pointer, first of all, as it must."""
    pointers = [parameter for parameter in parameters if parameter.is_pointer]
    call = Call(name, parameters)
    for one in pointers:
        others = [parameter for parameter in pointers if parameter is not one]
        odd = {other.place: "odd" for other in others if other.align > 1}
        null = {other.place: "null" for other in others if other.needed}
        if one.needed:
            wanted = header.DLRS_NULL_ARG, one.place
            assert call.run({one.place: "null"}) == wanted, one.place
            assert call.run({**odd, one.place: "null"}) == wanted, one.place
            first = min([one.place, *null])
            assert call.run({**null, one.place: "null"}) == (wanted[0], first), one.place
        if one.align > 1:
            wanted = header.DLRS_MISALIGNED_STRUCT, one.place
            assert call.run({one.place: "odd"}) == wanted, one.place
            first = min([one.place, *odd])
            assert call.run({**odd, one.place: "odd"}) == (wanted[0], first), one.place
