//! Batched copies.

use core::ptr::null;

use super::arg::{Items, Live, live, needed_if, optional, variable};
use super::copy_options::{Room, copy_options, dlrs_copy_options};
use super::error::{dlrs_error, dlrs_status, run};
use crate::abi::*;
use crate::batch;
use crate::copy::Given;
use crate::error::Arg;

/// Copy several tensors; nothing is written unless every pair can be copied.
///
/// Shape:     src and dst are arrays of n tensors, possibly NULL when n is 0; each pair as in
///            dlrs_copy.
/// Bytes:     as dlrs_copy. No dst may share memory with a tensor of another pair: this is not
///            checked, and the order of the pairs is undefined.
/// Device:    as dlrs_copy. Successive pairs of the same devices, streams and dlrs_ready_record are
///            ordered once and waited for once, whatever their number.
/// Errors:    as dlrs_copy for every pair, in the order of the pairs. When a pair is at fault and
///            failed is not NULL, *failed is its index; else *failed is n or not modified.
///            On any error but a device's nothing has been written. After a device's any dst may
///            have been; nothing is pending, unless DLRS_COPY_ASYNC was given. All else as
///            dlrs_copy.
///
/// # Safety
/// As dlrs_copy, for every pair; no other thread modifies the structs meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_copy_batch(
    n: u64,
    src: *const *const DLManagedTensorVersioned,
    dst: *const *mut DLManagedTensorVersioned,
    options: *const dlrs_copy_options,
    failed: *mut u64,
    error: *mut dlrs_error,
) -> dlrs_status {
    let args: [Arg; 2] = [Arg::src, Arg::dst];
    let pointers = (
        needed_if(n > 0, live(src, args[0])),
        needed_if(n > 0, live(dst, args[1])),
        optional(live(options, Arg::options)),
        optional(variable(failed, Arg::failed)),
    );
    // SAFETY: src and dst hold n pointers each, to live tensors that stay as they are during the
    // call; options and error are NULL or live, failed is NULL or writable, by the preface.
    unsafe {
        run("dlrs_copy_batch", error, pointers, |(from, to, options, failed)| {
            let (from, to) = (Items::new(from, n, args[0])?, Items::new(to, n, args[1])?);
            let mut room = Room::uninit();
            let options = copy_options(options, Arg::options, 0, &mut room)?;
            let pair = |index: usize| {
                let src = Live::new(from.get(index).unwrap_or(null()), args[0])?;
                let target = to.get(index).map_or(null(), <*mut _>::cast_const);
                Ok(Given { src: src.get(), dst: Live::new(target, args[1])?.get() })
            };
            batch::copy_batch(from.len(), pair, args, options).map_err(|(index, error)| {
                if let Some(failed) = failed {
                    failed.set(index as u64);
                }
                error
            })
        })
    }
}
