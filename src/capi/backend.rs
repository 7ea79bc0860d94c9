//! Backends: drivers of devices, given by the caller.

use super::arg;
use super::error::{dlrs_error, dlrs_status, run};
use crate::device::plugged::dlrs_backend;
use crate::device::registry;
use crate::error::{Error, Of, Parameter, Status::*};

// SAFETY: plain data, u32 first.
unsafe impl arg::Sized32 for dlrs_backend {}

/// Set who drives the devices of a type, for the whole process.
///
/// Device:    any known type but kDLCPU; a table may be set for several types. It comes before the
///            library's own backend for the type.
/// Ownership: *backend must stay valid until another is set and nothing made with it is left;
///            tensors keep the backend that allocated them. NULL brings the library's own back.
///            *old, when old is not NULL, receives the one before, or NULL.
/// Errors:    DLRS_DEVICE_TYPE: unknown, or kDLCPU. DLRS_STRUCT_SIZE, DLRS_MISALIGNED_STRUCT:
///            backend. DLRS_BAD_ARG: its reserved is not 0. DLRS_NULL_ARG: it does not copy, or
///            allocates and does not free.
/// Threads:   any; as its functions.
/// Source:    this library.
///
/// # Safety
/// See the preface; the functions of the backend do what dlrs_backend says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_backend_set(
    device_type: i32,
    backend: *const dlrs_backend,
    old: *mut *const dlrs_backend,
    error: *mut dlrs_error,
) -> dlrs_status {
    run("dlrs_backend_set", error, || {
        let argument = &Parameter(2, "backend");
        // SAFETY: NULL or a live table, by the preface.
        if let Some(table) = unsafe { arg::options(backend, argument) }? {
            if table.reserved != 0 {
                let error = Error::new(DLRS_BAD_ARG).option("reserved").of(argument);
                return Err(error.value(table.reserved.into()));
            }
            if table.copy.is_none() || (table.alloc.is_some() && table.free.is_none()) {
                return Err(Error::new(DLRS_NULL_ARG).option("copy or free").of(argument));
            }
        }
        let before = registry::register(device_type, backend.cast_mut());
        let before = before.of(&Parameter(1, "device_type"))?;
        if !old.is_null() && old.is_aligned() {
            // SAFETY: a variable of the caller's.
            unsafe { old.write(before) }
        }
        Ok(())
    })
}
