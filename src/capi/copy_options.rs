//! How copies are made.

use core::ffi::c_void;
use core::mem::{MaybeUninit, offset_of};

use super::arg::{self, Live};
use super::workers::dlrs_workers_run;
use crate::copy::{Options, Streams};
use crate::cpu::{Parallel, ParallelFor};
use crate::error::{Arg, Error, Result, Status::*};
use crate::platform;

/// Source and destination may share memory: the result is as if copied through a temporary.
pub const DLRS_COPY_ALLOW_OVERLAP: u32 = 1 << 0;
/// Elements are copied as bytes: any dtype is accepted, known or not, and opaque handles. Flags and
/// device must be known.
pub const DLRS_COPY_RAW_BYTES: u32 = 1 << 1;

/// A copy by a device alone may return once it is enqueued. The caller keeps source and destination
/// alive, and the source's elements unchanged, until the stream has completed it (dlrs_stream_sync,
/// an event, or dlrs_release_after_take). Copies that need a staging buffer in host memory wait as
/// without this flag.
pub const DLRS_COPY_ASYNC: u32 = 1 << 2;

/// For dlrs_cast and dlrs_fill only: values too large for the destination's dtype become its
/// largest finite value of that sign. Without it integers keep their low bits, and floats become
/// infinity, or NaN where there is none.
pub const DLRS_COPY_SATURATE: u32 = 1 << 3;

/// Runs parts of a copy on the caller's own threads: calls `body(body_context, index)` once for
/// every `index` below `n`, on threads of its choice, and returns 0 after the last one has
/// returned. Not 0 means that it called none: the calling thread then does all the work. If it
/// returns 0 without having called all, the copy fails with DLRS_CALLBACK and the destination is
/// undefined.
#[allow(non_camel_case_types)]
pub type dlrs_parallel_for_fn = Option<
    unsafe extern "C" fn(
        context: *mut c_void,
        n: usize,
        body: unsafe extern "C" fn(body_context: *mut c_void, index: usize),
        body_context: *mut c_void,
    ) -> i32,
>;

/// How to copy. All members but `struct_size` may be 0.
///
/// There is no option to write to READ_ONLY data: to do so, describe it without the flag
/// (dlrs_copy_desc). The backend chooses the host memory of its staging buffers; scratch memory
/// comes from malloc.
///
/// Order: a side has a stream, which is
///
///  its memory     without a name                      with src_stream or dst_stream
///  of a device    the device's default stream         that one
///  managed        the default stream of the device    that one
///                 that the driver says it is on
///  pinned         none                                that one
///  of the CPU     none                                that one, of the other side's
///                                                     device: the call waits for it
///
/// and every function that takes these options follows one rule: the copy starts after the work
/// enqueued so far on the source's stream, and on the destination's stream, which may still be
/// reading; later work on the destination's stream sees the result. Without DLRS_COPY_ASYNC the
/// call also returns after it. Work on pinned memory is known only to the caller: give its stream,
/// or wait for it before. Where the CPU copies, or the two sides have different backends, the call
/// waits for streams; the CPU accesses managed memory of a device without concurrentManagedAccess
/// only while that device is idle. What dlrs_ready_record recorded for a side is waited for in any
/// case, and replaces the stream of a source where none is given.
///
/// CUDA's 1 (legacy) and 2 (per thread) are streams of the device, or of the current context
/// where the memory is not a device's. A stream that is being captured does not wait for a default
/// stream: a graph cannot wait for work outside it. DLRS_CAPTURING: the copy would have to wait for
/// a capture. DLRS_STREAM: a stream is given for a side that has none.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(non_camel_case_types)]
pub struct dlrs_copy_options {
    /// `sizeof(dlrs_copy_options)`.
    pub struct_size: u32,
    /// `DLRS_COPY_*` bits.
    pub flags: u32,
    /// Most threads for one copy: 0 lets the library decide, by the processors that the calling
    /// thread may run on; 1 uses only the caller's.
    pub threads: u32,
    /// Must be 0.
    pub reserved: u32,
    /// Runs the parts of a copy on the caller's own pool; NULL to spawn and join threads.
    pub parallel_for: dlrs_parallel_for_fn,
    /// Passed to `parallel_for`.
    pub parallel_context: *mut c_void,
    /// Stream that computes the source's elements; NULL: see Order.
    pub src_stream: *mut c_void,
    /// Stream that reads the destination and will use the result; NULL: see Order.
    pub dst_stream: *mut c_void,
}

// SAFETY: plain data, u32 first.
unsafe impl arg::Sized32 for dlrs_copy_options {
    const EARLIER: &'static [usize] = &[offset_of!(dlrs_copy_options, src_stream)];
}

/// Room for options that are not the defaults.
pub(super) type Room = MaybeUninit<Options>;

/// Options of C, turned into the core's, of a function that knows `more` flags. The first that a
/// function does which may wait for threads: a thread that was cancelled ends here, and nothing is
/// lost.
#[inline]
pub(super) fn copy_options(
    options: Option<Live<dlrs_copy_options>>,
    argument: Arg,
    more: u32,
    room: &mut Room,
) -> Result<&Options> {
    platform::cancellation_point();
    match options {
        None => Ok(&Options::DEFAULT),
        Some(options) => given_options(options, argument, more, room),
    }
}

#[inline(never)]
fn given_options(
    given: Live<dlrs_copy_options>,
    argument: Arg,
    more: u32,
    room: &mut Room,
) -> Result<&Options> {
    let mut read = MaybeUninit::uninit();
    let Some(options) = arg::options(Some(given), argument, &mut read)? else {
        return Ok(&Options::DEFAULT);
    };
    let known = DLRS_COPY_ALLOW_OVERLAP | DLRS_COPY_RAW_BYTES | DLRS_COPY_ASYNC | more;
    if options.flags & !known | options.reserved != 0 {
        let (name, value) = match options.flags & !known {
            0 => (arg::RESERVED, options.reserved),
            _ => (arg::FLAGS, options.flags),
        };
        let error = Error::new(DLRS_BAD_ARG).option(name).of(argument);
        return Err(error.value(value.into()));
    }
    let context = options.parallel_context;
    let hook = options.parallel_for.map(|run| match run as *const () {
        // SAFETY: the context of dlrs_workers_run is NULL or live workers.
        own if own == dlrs_workers_run as *const () => unsafe { ParallelFor::of(context.cast()) },
        _ => ParallelFor { run, ctx: context, warm: 0 },
    });
    Ok(room.write(Options {
        allow_overlap: options.flags & DLRS_COPY_ALLOW_OVERLAP != 0,
        repack: false,
        saturate: options.flags & DLRS_COPY_SATURATE != 0,
        raw_bytes: options.flags & DLRS_COPY_RAW_BYTES != 0,
        parallel: Parallel { threads: options.threads as usize, hook },
        streams: Streams {
            src: options.src_stream,
            dst: options.dst_stream,
            enqueue_only: options.flags & DLRS_COPY_ASYNC != 0,
        },
    }))
}
