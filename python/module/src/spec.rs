//! The tables that CPython reads: structs and numbers of its stable ABI.

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::mem::zeroed;
use core::ptr::{null, null_mut, without_provenance_mut};
use dlpack_python::{Object, PyObject};

/// A method or function with the `METH_FASTCALL | METH_KEYWORDS` convention, which has been the
/// same since 3.7 and is part of the stable ABI since 3.10.
pub type Method = unsafe extern "C" fn(
    object: Object,
    args: *const Object,
    nargs: isize,
    keywords: Option<Object>,
) -> *mut PyObject;
pub type Getter = unsafe extern "C" fn(Object, *mut c_void) -> *mut PyObject;
/// `Py_mod_exec`: fills a new module.
pub type Exec = unsafe extern "C" fn(module: *mut PyObject) -> c_int;

/// `METH_FASTCALL | METH_KEYWORDS`.
pub const METH_CALL: c_int = 0x80 | 2;

const METH_CLASS: c_int = 0x10;

/// `Py_TPFLAGS_DEFAULT`, which is `Py_TPFLAGS_HAVE_VERSION_TAG`, and `Py_TPFLAGS_HAVE_GC`. Without
/// `BASETYPE`: no subclasses, so an object of the type is one of ours to the last byte.
pub const TYPE_FLAGS: c_uint = 1 << 18 | 1 << 14;

/// `visitproc`
pub type Visit = unsafe extern "C" fn(object: *mut PyObject, context: *mut c_void) -> c_int;

/// What of a type is set, by CPython's names; the numbers are part of the stable ABI.
#[derive(Clone, Copy)]
#[repr(i32)]
#[allow(non_camel_case_types)]
pub enum Slot {
    bf_getbuffer = 1,
    bf_releasebuffer = 2,
    mp_ass_subscript = 3,
    mp_length = 4,
    mp_subscript = 5,
    nb_bool = 9,
    nb_float = 11,
    nb_index = 13,
    nb_int = 26,
    sq_contains = 41,
    /// By which Python iterates.
    sq_item = 44,
    sq_length = 45,
    tp_dealloc = 52,
    tp_doc = 56,
    tp_iter = 62,
    tp_methods = 64,
    tp_new = 65,
    tp_repr = 66,
    /// With it and no `tp_hash` objects are not hashable.
    tp_richcompare = 67,
    tp_traverse = 71,
    tp_members = 72,
    tp_getset = 73,
}

/// `PyType_Slot`.
#[repr(C)]
pub struct TypeSlot {
    slot: c_int,
    value: *mut c_void,
}

impl TypeSlot {
    /// One slot; the value is a function or a static table.
    pub const fn new(slot: Slot, value: *const c_void) -> TypeSlot {
        TypeSlot { slot: slot as c_int, value: value.cast_mut() }
    }

    pub const END: TypeSlot = TypeSlot { slot: 0, value: null_mut() };
}

/// `PyType_Spec`.
#[repr(C)]
pub struct TypeSpec {
    pub name: *const c_char,
    pub basicsize: c_int,
    pub itemsize: c_int,
    pub flags: c_uint,
    /// A list that `TypeSlot::END` ends.
    pub slots: *const TypeSlot,
}

/// `PyMethodDef`.
#[repr(C)]
pub struct MethodDef {
    name: *const c_char,
    method: Option<Method>,
    flags: c_int,
    doc: *const c_char,
}

impl MethodDef {
    /// Name and docstring, each with its NUL, and function.
    pub const fn new(name: &'static str, method: Method, doc: &'static [u8]) -> Self {
        let (name, doc) = (name.as_ptr().cast(), doc.as_ptr().cast());
        MethodDef { name, method: Some(method), flags: METH_CALL, doc }
    }

    /// Its name; none ends a list.
    pub fn name(&self) -> Option<&'static CStr> {
        // SAFETY: NULL, or what `new` was given.
        (!self.name.is_null()).then(|| unsafe { CStr::from_ptr(self.name) })
    }

    /// The same, of the type: it gets the type in place of an object.
    pub const fn of_type(self) -> Self {
        MethodDef { flags: METH_CALL | METH_CLASS, ..self }
    }

    pub const END: MethodDef = MethodDef { name: null(), method: None, flags: 0, doc: null() };
}

// SAFETY: a table of constants.
unsafe impl Sync for MethodDef {}

/// A docstring, as the lines of doc comments: the blank in front of each is not its own, and an
/// empty line comes in front of the example.
pub struct Docstring(pub &'static str);

impl Docstring {
    /// Its bytes, with NUL.
    pub const fn nbytes(&self) -> usize {
        self.copy(&mut []) + 1
    }

    /// What Python reads.
    pub const fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.copy(&mut bytes);
        bytes
    }

    const fn copy(&self, to: &mut [u8]) -> usize {
        let (lines, mut from, mut count, mut examples) = (self.0.as_bytes(), 0, 0, false);
        while from < lines.len() {
            let begins = from == 0 || lines[from - 1] == b'\n';
            let byte = match begins && lines[from] == b' ' {
                true if !examples && lines[from + 1] == b'>' => {
                    examples = true;
                    Some(b'\n')
                }
                true => None,
                false => Some(lines[from]),
            };
            if let Some(byte) = byte {
                if count < to.len() {
                    to[count] = byte;
                }
                count += 1;
            }
            from += 1;
        }
        count
    }
}

/// `PyGetSetDef`.
#[repr(C)]
pub struct GetSetDef {
    name: *const c_char,
    get: Option<Getter>,
    set: *const c_void,
    doc: *const c_char,
    closure: *mut c_void,
}

impl GetSetDef {
    /// An attribute that cannot be set; the closure goes to the getter, which may serve many.
    pub const fn new(
        name: &'static CStr,
        get: Getter,
        doc: &'static str,
        closure: *mut c_void,
    ) -> Self {
        let (name, doc) = (name.as_ptr(), doc.as_ptr().cast());
        GetSetDef { name, get: Some(get), set: null(), doc, closure }
    }

    pub fn closure(&self) -> *mut c_void {
        self.closure
    }

    pub fn name(&self) -> &'static str {
        // SAFETY: what `new` was given.
        let name = unsafe { CStr::from_ptr(self.name) };
        name.to_str().unwrap_or_default()
    }

    // SAFETY: numbers, and pointers that may be NULL.
    pub const END: GetSetDef = unsafe { zeroed() };
}

// SAFETY: a table of constants.
unsafe impl Sync for GetSetDef {}

/// `PyMemberDef`.
#[repr(C)]
pub struct MemberDef {
    pub name: *const c_char,
    /// `T_PYSSIZET` here.
    pub kind: c_int,
    /// Bytes from the start of the object.
    pub offset: isize,
    /// `READONLY` here.
    pub flags: c_int,
    pub doc: *const c_char,
}

pub const T_PYSSIZET: c_int = 19;
pub const READONLY: c_int = 1;

/// `PyModuleDef_Slot`.
#[repr(C)]
pub struct ModuleSlot {
    slot: c_int,
    value: *mut c_void,
}

/// The slots of a module that any interpreter may have, and that needs no GIL: what a Python knows
/// of them is the end of the list, from one of these places on.
pub type ModuleSlots = [ModuleSlot; 4];

impl ModuleSlot {
    /// The slots of a module that is filled by a function.
    pub const fn list(exec: Exec) -> ModuleSlots {
        [
            // Py_mod_gil: Py_MOD_GIL_NOT_USED, since 3.13
            ModuleSlot { slot: 4, value: without_provenance_mut(1) },
            // Py_mod_multiple_interpreters: Py_MOD_PER_INTERPRETER_GIL_SUPPORTED, since 3.12
            ModuleSlot { slot: 3, value: without_provenance_mut(2) },
            // Py_mod_exec
            ModuleSlot { slot: 2, value: exec as *mut c_void },
            ModuleSlot { slot: 0, value: null_mut() },
        ]
    }
}

// SAFETY: a table of constants.
unsafe impl Sync for ModuleSlot {}

impl MemberDef {
    pub const END: MemberDef =
        MemberDef { name: null(), kind: 0, offset: 0, flags: 0, doc: null() };
}
