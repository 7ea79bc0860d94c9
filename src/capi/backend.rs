//! Backends: drivers of devices, supplied by the caller.

use core::mem::MaybeUninit;

use super::arg::{self, Live, live, optional, result};
use super::error::{dlrs_error, dlrs_status, run};
use crate::error::{Arg, Error, Field::DLRS_FIELD_NONE, Status::*};
use crate::plugged::dlrs_backend;
use crate::registry;

// SAFETY: plain data, u32 first.
unsafe impl arg::Sized32 for dlrs_backend {}

/// Set the backend of a device type, for the whole process.
///
/// Device:    any known type but kDLCPU; a table may be set for several types. It replaces the
///            library's own backend for the type.
/// Ownership: *backend is copied during the call and the copy never freed: reuse one table instead
///            of setting new ones. Its functions, context and name must stay valid until another is
///            set, calls that began before have returned, and nothing made with it is left. A
///            tensor stores the backend that allocated it, or with which dlrs_ready_record first
///            recorded, and is freed by it. Memory, streams and events of dlrs_mem_alloc,
///            dlrs_stream_create and dlrs_event_create do not: free them before another backend is
///            set. NULL restores the library's own. *old, when old is not NULL, receives the
///            address of the previous table, or NULL.
/// Errors:    DLRS_DEVICE_TYPE: unknown, or kDLCPU. DLRS_STRUCT_SIZE: backend.
///            DLRS_MISALIGNED_STRUCT: backend or old. DLRS_BAD_ARG: its reserved is not 0.
///            DLRS_NULL_ARG: it does not copy, or allocates and does not free. DLRS_NOMEM: no
///            memory for the copy. On any error *old is NULL.
/// Threads:   any; as its functions. A concurrent call uses either backend.
///
/// # Safety
/// The functions of the backend do what dlrs_backend documents.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_backend_set(
    device_type: i32,
    backend: *const dlrs_backend,
    old: *mut *const dlrs_backend,
    error: *mut dlrs_error,
) -> dlrs_status {
    let pointers = (
        optional(live(backend, Arg::backend)),
        optional(result(old.cast::<*mut dlrs_backend>(), Arg::old)),
    );
    // SAFETY: backend is NULL or a live table of the size that it says, error NULL or live, old
    // NULL or a writable variable, by the preface.
    unsafe {
        run("dlrs_backend_set", error, pointers, |(backend, old)| {
            let (argument, mut room) = (Arg::backend, MaybeUninit::uninit());
            let table = arg::options(backend, argument, &mut room)?;
            if let Some(table) = table {
                if table.reserved != 0 {
                    let error = Error::new(DLRS_BAD_ARG).option(arg::RESERVED).of(argument);
                    return Err(error.value(table.reserved.into()));
                }
                if table.copy.is_none() || (table.alloc.is_some() && table.free.is_none()) {
                    return Err(Error::new(DLRS_NULL_ARG).option("copy or free").of(argument));
                }
            }
            let new = backend.map(Live::as_ptr).zip(table);
            let before = registry::register(device_type, new)
                .map_err(|e| e.field(DLRS_FIELD_NONE).of(Arg::device_type))?;
            if let Some(old) = old {
                old.set(before);
            }
            Ok(())
        })
    }
}
