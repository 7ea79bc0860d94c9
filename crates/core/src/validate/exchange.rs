//! Exchange API tables of other frameworks.

use crate::abi::*;
use crate::error::{Error, Field::*, Result, Status::*};

/// Limit of tables of older majors: a chain may be a cycle.
pub const TABLES_MOST: usize = 16;

/// The table of a major version in a chain.
///
/// # Safety
/// `header` is the aligned, live head of a chain of live tables.
pub unsafe fn find(
    header: *const DLPackExchangeAPIHeader,
    major: u32,
) -> Result<*const DLPackExchangeAPI> {
    let (mut at, mut newest) = (header, None);
    for _ in 0..TABLES_MOST {
        if at.is_null() {
            break;
        }
        if !at.is_aligned() {
            return Err(Error::new(DLRS_MISALIGNED_STRUCT).option("prev_api"));
        }
        // SAFETY: `at` is aligned and heads a live table; read once.
        let found = unsafe { at.read() };
        if found.version.major == major {
            return Ok(at.cast());
        }
        newest.get_or_insert(found.version.major);
        at = found.prev_api;
    }
    let error = Error::new(DLRS_VERSION).field(DLRS_FIELD_VERSION).limit(major.into());
    let error = error.detail("the framework has no exchange table of this major version");
    Err(error.value(newest.unwrap_or(0).into()))
}

/// A table of major 1, complete but for the one function that may be missing.
///
/// # Safety
/// `table` is a live table of major 1.
pub unsafe fn read(table: *const DLPackExchangeAPI) -> Result<DLPackExchangeAPI> {
    // SAFETY: `table` is a live table of major 1, and static: no thread writes it.
    let table = unsafe { table.read() };
    let missing = if table.managed_tensor_allocator.is_none() {
        "managed_tensor_allocator"
    } else if table.managed_tensor_from_py_object_no_sync.is_none() {
        "managed_tensor_from_py_object_no_sync"
    } else if table.managed_tensor_to_py_object_no_sync.is_none() {
        "managed_tensor_to_py_object_no_sync"
    } else if table.current_work_stream.is_none() {
        "current_work_stream"
    } else {
        return Ok(table);
    };
    Err(Error::new(DLRS_NULL_ARG).option(missing))
}
