//! Python: capsules, and export and import by `__dlpack__`. The library does not link libpython.

use core::ffi::c_void;
use core::mem::{MaybeUninit, offset_of};
use core::ptr::{NonNull, null, null_mut};

use super::arg::{self, Live, Out, Taken, live, optional, result};
use super::convert::{dlrs_import_options, import_of};
use super::error::{dlrs_error, dlrs_status, run};
use crate::abi::*;
use crate::error::{Arg, Error, Of, Result, Status::*};
use crate::python::import::{Wanted, protocol};
use crate::python::{self, Object, Owned, PyObject, Python, capsule, export, stream};
use crate::tensor::share::Managed;
use crate::validate::check_flags;

/// Hands a new object over.
pub(super) fn give(out: Out<*mut c_void>, made: Owned) {
    out.set(made.into_ptr().cast());
}

/// Puts the tensor of a caller's variable into the object that `make` makes of it.
///
/// # Safety
/// `tensor` and `out` are NULL or writable variables; a tensor in the first is live.
pub(super) unsafe fn put<T: Managed>(
    tensor: *mut *mut T,
    out: *mut *mut c_void,
    make: impl FnOnce(Python, NonNull<T>) -> Result<Owned>,
) -> Result<()> {
    const ARGS: [Arg; 2] = [Arg::tensor, Arg::out];
    // SAFETY: tensor and out are NULL or writable variables; a tensor in the first is live.
    let (taken, out) = unsafe { Taken::new(tensor, out, ARGS) }?;
    let made = make(Python::get()?, taken.tensor).of(ARGS[0])?;
    taken.empty();
    give(out, made);
    Ok(())
}

/// Put a tensor into a capsule named "dltensor_versioned".
///
/// Shape:     unchanged. A foreign tensor without deleter, manager_ctx or strides is boxed in one
///            that has them, which some consumers need.
/// Bytes:     data and byte_offset stay as they are.
/// Device:    any; no stream waits.
/// Ownership: on success *tensor is taken and set to NULL, and *out is a new reference. If the
///            capsule is not consumed, its destructor calls the tensor's deleter.
/// Flags:     unchanged.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: tensor, *tensor, out.
///            DLRS_VERSION: major version is not 1. DLRS_UNSUPPORTED: there is no Python in this
///            process, it is not running, or this thread is not attached to it.
///            DLRS_CALLBACK: Python raised an exception, which stays set.
///            when it must be boxed, what dlrs_import_take reports at DLRS_LEVEL_STRUCT.
/// Threads:   attached to Python (holding its lock, where it has one).
/// Source:    python_spec: the producer names the capsule and frees a tensor that is not consumed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_py_capsule_new_take(
    tensor: *mut *mut DLManagedTensorVersioned,
    out: *mut *mut c_void,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: tensor and out are NULL or writable variables; a tensor in the first is live, and the
    // capsule owns its reference on success; error is NULL or live.
    unsafe {
        run("dlrs_py_capsule_new_take", error, (), |()| {
            put(tensor, out, |python, tensor| capsule::new(python, tensor))
        })
    }
}

/// Put a legacy tensor into a capsule named "dltensor".
///
/// Shape:     unchanged.
/// Device:    any; no stream waits. If the host cannot access the data, the destructor checks more
///            than the name: TensorFlow calls the deleter of a tensor that it rejects, and leaves
///            the capsule's name.
/// Ownership: a foreign tensor is boxed, so its deleter may be NULL.
/// Flags:     the legacy struct has none.
/// Errors:    when it is boxed, what dlrs_validate reports at DLRS_LEVEL_STRUCT; no DLRS_VERSION.
///            All else as dlrs_py_capsule_new_take.
/// Source:    python_spec: max_version None requests the legacy struct.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_py_capsule_new_legacy_take(
    tensor: *mut *mut DLManagedTensor,
    out: *mut *mut c_void,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: tensor and out are NULL or writable variables; a tensor in the first is live, and the
    // capsule owns its reference on success; error is NULL or live.
    unsafe {
        run("dlrs_py_capsule_new_legacy_take", error, (), |()| {
            put(tensor, out, |python, tensor| capsule::new_legacy(python, tensor))
        })
    }
}

/// Take the tensor out of a capsule, of either kind.
///
/// Shape:     unchanged; a legacy tensor's NULL strides become compact row-major.
/// Bytes:     data and byte_offset stay as they are.
/// Device:    any; no stream waits.
/// Ownership: the caller owns *out, and the capsule is renamed: "used_dltensor_versioned" or
///            "used_dltensor". A legacy tensor is boxed in a versioned one. On error the capsule
///            keeps its tensor and its name.
/// Flags:     kept; those of a legacy tensor are legacy_flags, for its struct has none. NumPy
///            treats legacy tensors as DLPACK_FLAG_BITMASK_READ_ONLY.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: capsule or out. DLRS_FLAGS: legacy_flags.
///            DLRS_BAD_ARG: no capsule of DLPack, or it was consumed before.
///            DLRS_VERSION: major version is not 1; the capsule will call the deleter.
///            DLRS_UNSUPPORTED: as dlrs_py_capsule_new_take. for a legacy tensor, what
///            dlrs_validate reports at DLRS_LEVEL_STRUCT. A versioned one is not validated: call
///            dlrs_validate_managed, or use dlrs_py_import.
/// Threads:   attached to Python. Of several threads that consume one capsule at once one gets the
///            tensor, without the GIL too; this does not hold for consumers in other libraries.
/// Source:    python_spec: the consumer renames the capsule.
///
/// # Safety
/// `capsule` is a live Python object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_py_capsule_consume(
    capsule: *mut c_void,
    legacy_flags: u64,
    out: *mut *mut DLManagedTensorVersioned,
    error: *mut dlrs_error,
) -> dlrs_status {
    let pointers = (live(capsule.cast::<PyObject>(), Arg::capsule), result(out, Arg::out));
    // SAFETY: capsule is NULL or a live object, out NULL or a writable variable, error NULL or
    // live; `get` found this thread attached.
    unsafe {
        run("dlrs_py_capsule_consume", error, pointers, |(capsule, out)| {
            check_flags(legacy_flags).of(Arg::legacy_flags)?;
            let capsule = Object::new(capsule.as_ptr());
            let taken = capsule::consume(Python::get()?, capsule, legacy_flags);
            out.give(taken.of(Arg::capsule)?.into_tensor());
            Ok(())
        })
    }
}

/// The arguments of `__dlpack__`: borrowed objects; NULL and None are the default.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(non_camel_case_types)]
pub struct dlrs_py_request {
    /// `sizeof(dlrs_py_request)`.
    pub struct_size: u32,
    /// `stream`: an integer, see dlrs_stream_from_py.
    pub stream: *mut c_void,
    /// `max_version`: two integers; None requests the legacy struct.
    pub max_version: *mut c_void,
    /// `dl_device`: two integers, device type and ordinal.
    pub dl_device: *mut c_void,
    /// `copy`: true always, false never, None if needed.
    pub copy: *mut c_void,
    /// From the producer: the stream that computes the data; NULL for the default one.
    pub work_stream: *mut c_void,
}

// SAFETY: plain data, u32 first.
unsafe impl arg::Sized32 for dlrs_py_request {}

/// What a request asks for; NULL is nothing in particular.
///
/// # Safety
/// The objects of the request are NULL or live.
#[inline(always)]
pub(super) unsafe fn asked(
    python: Python,
    request: Option<&dlrs_py_request>,
) -> Result<export::Request> {
    let Some(request) = request else { return Ok(export::Request::ANY) };
    // SAFETY: the objects are NULL or live; this thread is attached, as it has a `Python`.
    let given = |object: *mut c_void| unsafe { Object::optional(object.cast()) };
    let asked = export::read(
        python,
        &export::Keywords {
            stream: given(request.stream),
            max_version: given(request.max_version),
            dl_device: given(request.dl_device),
            copy: given(request.copy),
        },
    )?;
    Ok(export::Request { work_stream: request.work_stream, ..asked })
}

/// Implement `__dlpack__(stream, max_version, dl_device, copy)` for a tensor of this library.
///
/// Shape:     unchanged; a copy is dense in the order of the strides.
/// Bytes:     data and byte_offset stay as they are, unless a copy is made.
/// Device:    the tensor's own; for another one the data is copied as by dlrs_clone, synchronously.
///            Else the consumer's stream is made to wait for work_stream, or for the record of
///            dlrs_ready_record instead; for a consumer in host memory, which has no stream, the
///            call waits. With a copy to host memory, stream is one of the tensor's device
///            (dlpack#152). Pinned and managed memory becomes the CPU's without a copy, as in
///            dlrs_to_device.
/// Ownership: *out is a new reference to a capsule with its own reference, "dltensor_versioned"
///            when max_version is 1.0 or newer, else "dltensor". The caller keeps its reference.
/// Flags:     kept; a copy has IS_COPIED and no READ_ONLY.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: tensor or out. DLRS_STRUCT_SIZE: request.
///            DLRS_FOREIGN, DLRS_VERSION: the tensor was not made here.
///            DLRS_BAD_ARG: max_version or dl_device. DLRS_STREAM: stream does not fit the device.
///            DLRS_COPY_NEEDED: copy is false and the device another. DLRS_READ_ONLY, DLRS_FLAGS:
///            the legacy struct lacks the flag; a copy can be legacy. DLRS_DEVICE_TYPE,
///            DLRS_UNSUPPORTED: no backend can copy so, or has streams. DLRS_NOMEM: no memory;
///            DLRS_MISALIGNED: as dlrs_clone. Classes 5 and 6: the driver. DLRS_CALLBACK: Python
///            raised an exception, which stays set; dlrs_py_error_set_as raises one for every other
///            failure.
/// Threads:   attached to Python.
/// Source:    the array API standard's `__dlpack__`.
///
/// # Safety
/// The request's objects are NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_py_export(
    tensor: *mut DLManagedTensorVersioned,
    request: *const dlrs_py_request,
    out: *mut *mut c_void,
    error: *mut dlrs_error,
) -> dlrs_status {
    let request = optional(live(request, Arg::request));
    let pointers = (live(tensor, Arg::tensor), request, result(out, Arg::out));
    // SAFETY: tensor, request and its objects, and error are NULL or live, out is NULL or a
    // writable variable, by the preface.
    unsafe {
        run("dlrs_py_export", error, pointers, |(tensor, request, out)| {
            let mut room = MaybeUninit::uninit();
            let request = arg::options(request, Arg::request, &mut room)?;
            let python = Python::get()?;
            let asked = asked(python, request).of(Arg::request)?;
            give(out, export::export(python, tensor.get(), &asked).of(Arg::tensor)?);
            Ok(())
        })
    }
}

/// Treat legacy tensors as writable: their struct lacks the flag, and read-only is the default.
pub const DLRS_PY_LEGACY_WRITABLE: u32 = 1 << 0;

/// Of `protocols`: the exchange API of the object's type. `__dlpack__` is called instead where a
/// tensor requires gradients or has complex elements: PyTorch's API exports what its `__dlpack__`
/// rejects.
pub const DLRS_PY_EXCHANGE_API: u32 = 1 << 0;
/// Of `protocols`: `__dlpack__`.
pub const DLRS_PY_DUNDER_DLPACK: u32 = 1 << 1;
/// Of `protocols`: the object is a capsule of DLPack.
pub const DLRS_PY_CAPSULE: u32 = 1 << 2;
/// Of `protocols`: the buffer protocol.
pub const DLRS_PY_BUFFER: u32 = 1 << 3;
/// Of `protocols`: `__cuda_array_interface__` and `__array_interface__`.
pub const DLRS_PY_ARRAY_INTERFACE: u32 = 1 << 4;

/// How to import a Python object. All members but `struct_size` may be 0.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(non_camel_case_types)]
pub struct dlrs_py_import_options {
    /// `sizeof(dlrs_py_import_options)`.
    pub struct_size: u32,
    /// `DLRS_PY_*` bits.
    pub flags: u32,
    /// The stream that will use the tensor, as dlrs_stream_to_py returns it; 0 or
    /// DLRS_PY_STREAM_NONE for the default stream. One of dl_device, if that is given. Not passed
    /// to the producer for CPU or pinned memory.
    pub stream: i64,
    /// The device of the result; device_type 0 for that of the object.
    pub dl_device: DLDevice,
    /// Requirements on the tensor, and whether to copy; NULL for the defaults.
    pub import_options: *const dlrs_import_options,
    /// The protocols to try, in the order of their bits; 0 is all of them. A from_dlpack uses
    /// DLRS_PY_EXCHANGE_API and DLRS_PY_DUNDER_DLPACK.
    pub protocols: u32,
    /// Must be 0.
    pub reserved: u32,
    /// `device` of a from_dlpack, a Python object: a pair of integers, or a name such as
    /// "cuda:1"; NULL and None leave dl_device.
    pub device: *mut c_void,
    /// `copy` of a from_dlpack, a Python object: True or False; NULL and None leave
    /// import_options->copy.
    pub copy: *mut c_void,
}

// SAFETY: plain data, u32 first.
unsafe impl arg::Sized32 for dlrs_py_import_options {
    const EARLIER: &'static [usize] = &[offset_of!(dlrs_py_import_options, protocols)];
}

const DEFAULTS: dlrs_py_import_options = dlrs_py_import_options {
    struct_size: 0,
    flags: 0,
    stream: 0,
    dl_device: DLDevice { device_type: 0, device_id: 0 },
    import_options: null(),
    protocols: 0,
    reserved: 0,
    device: null_mut(),
    copy: null_mut(),
};

/// Which option has bits that are not known.
#[cold]
fn unknown(flags: u32, protocols: u32, reserved: u32) -> Error {
    let (name, value) = match (flags & !DLRS_PY_LEGACY_WRITABLE, protocols & !protocol::ALL) {
        (0, 0) => (arg::RESERVED, reserved),
        (0, _) => ("protocols\0has bits that are not known\0Clear them.", protocols),
        _ => (arg::FLAGS, flags),
    };
    Error::new(DLRS_BAD_ARG).option(name).value(value.into())
}

/// # Safety
/// The pointers in `options` are NULL or live.
unsafe fn wanted(options: &dlrs_py_import_options) -> Result<Wanted> {
    let &dlrs_py_import_options { flags, protocols, reserved, .. } = options;
    if (flags & !DLRS_PY_LEGACY_WRITABLE) | (protocols & !protocol::ALL) | reserved != 0 {
        return Err(unknown(flags, protocols, reserved));
    }
    let mut room = MaybeUninit::uninit();
    // SAFETY: the import options are NULL or live, and so is what they have.
    let mut import =
        *unsafe { import_of(Live::optional(options.import_options, Arg::options)?, &mut room)? };
    import.device = (options.dl_device.device_type != 0).then_some(options.dl_device);
    let writable = options.flags & DLRS_PY_LEGACY_WRITABLE != 0;
    Ok(Wanted {
        import,
        legacy_flags: if writable { 0 } else { DLPACK_FLAG_BITMASK_READ_ONLY },
        protocols: if options.protocols == 0 { protocol::ALL } else { options.protocols },
        stream: if options.stream == 0 { stream::NONE } else { options.stream },
    })
}

/// Import the tensor of a Python object, by any of the protocols.
///
/// Shape:     as dlrs_import_take.
/// Bytes:     as dlrs_import_take.
/// Device:    the object's; options->dl_device is passed to the producer, and if it does not copy,
///            the library does. A copy that no backend supports is requested from the producer by
///            `copy=True`; its result must be other memory, on the requested device. The stream of
///            options is passed to the producer and waits for the producer's; for a capsule, or an
///            object without `__dlpack_device__`, it waits for the default stream. A copy by the
///            library is ordered by it too.
/// Ownership: the caller owns *out, which keeps the object's data alive. It may be released on any
///            thread; Python references are then released attached to their interpreter, or leaked
///            if that has ended. Before Python 3.15 no interpreter but the main one may end while
///            another thread is releasing its objects.
/// Flags:     the producer's; see DLRS_PY_LEGACY_WRITABLE for legacy tensors.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: object or out.
///            DLRS_STRUCT_SIZE, DLRS_BAD_ARG: options.
///            DLRS_CALLBACK: the object raised an exception, or one is raised here: AttributeError
///            for an object with none of the protocols, TypeError for a device that is no pair of
///            integers and no name, BufferError for a dtype of a buffer or array interface that
///            DLPack cannot express. It stays set.
///            DLRS_UNSUPPORTED: other contents of a buffer or array interface; no Python, as
///            dlrs_py_capsule_new_take.
///            DLRS_VERSION: major version is not 1. DLRS_COPY_NEEDED: see options.
///            what dlrs_import_take reports.
/// Threads:   attached to Python.
/// Source:    the array API standard's from_dlpack. Tried in this order, if options allow: the
///            exchange API of the type; `__dlpack__` with the keywords of 2023.12, then, after a
///            TypeError, with fewer; a capsule itself; the buffer protocol; array interfaces. The
///            struct that the object returns is used, regardless of the request.
///
/// # Safety
/// `object` is a live Python object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_py_import(
    object: *mut c_void,
    options: *const dlrs_py_import_options,
    out: *mut *mut DLManagedTensorVersioned,
    error: *mut dlrs_error,
) -> dlrs_status {
    let object = object.cast::<PyObject>();
    let given = optional(live(options, Arg::options));
    let pointers = (live(object, Arg::object), given, result(out, Arg::out));
    // SAFETY: object, options, their objects and options, and error are NULL or live; out is NULL
    // or a writable variable; `get` found this thread attached.
    unsafe {
        run("dlrs_py_import", error, pointers, |(object, options, out)| {
            let mut room = MaybeUninit::uninit();
            let options = arg::options(options, Arg::options, &mut room)?.unwrap_or(&DEFAULTS);
            let mut wanted = wanted(options).of(Arg::options)?;
            let python = Python::get()?;
            let [device, copy] =
                [options.device, options.copy].map(|object| Object::optional(object.cast()));
            wanted.ask(python, device, copy).of(Arg::options)?;
            let imported = python::import::import(python, Object::new(object.as_ptr()), &wanted);
            out.give(imported.of(Arg::object)?.into_tensor());
            Ok(())
        })
    }
}
