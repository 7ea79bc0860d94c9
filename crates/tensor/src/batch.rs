//! Batched copies, and copies from and to plain bytes.

use crate::backend::{Transfer, Transfers};
use crate::copy::{self, Given, Job, Options, Pair, Scratch, Streams, route};
use crate::dtype;
use crate::error::{Arg, Error, Of, Result, Status::*};
use crate::layout;
use crate::validate::Snapshot;

/// Copies `n` pairs; all errors except a device's are reported before the first byte is written. On
/// failure returns which pair it was.
///
/// A pair is read and checked twice or more, since `n` plans would need memory: a change by another
/// thread in between can be rejected late, or copied, but not wrongly.
///
/// # Safety
/// Every pair is live and stays as it is during the call.
pub unsafe fn copy_batch(
    n: usize,
    pair: impl Fn(usize) -> Result<Given>,
    args: [Arg; 2],
    options: &Options,
) -> core::result::Result<(), (usize, Error)> {
    let mut nbytes = None;
    // SAFETY: the caller's word.
    let make = |index, job: &mut Job| unsafe { read(pair(index)?, args, options, job) };
    let mut job = Job::none();
    for index in 0..n {
        if make(index, &mut job).map_err(|error| (index, error))? {
            nbytes = nbytes.max(job.scratch_nbytes);
        }
    }
    let scratch = Scratch::new(nbytes).map_err(|error| (n, error))?;
    let mut pairs = Pairs { n, make, job: &mut job, at: 0, error: None };
    pairs.go_to(0);
    while pairs.at < n {
        let shared = pairs.job.scratch_nbytes;
        let alone = shared.is_some() || route::is_simple(&pairs.job.transfer, options);
        // SAFETY: the caller's word; the scratch memory is large enough.
        let copied = unsafe {
            match alone {
                _ if pairs.error.is_some() => pairs.error.take().map_or(Ok(()), Err),
                false => route::elsewhere(&mut pairs, options),
                true if shared.is_none() => route::execute(&mut pairs.job.transfer, options),
                true if shared <= nbytes => copy::run(pairs.job, &scratch, options),
                true => copy::finish(pairs.job, options),
            }
        };
        copied.of(args[1]).map_err(|error| (pairs.at, error))?;
        if alone {
            pairs.go_to(pairs.at.wrapping_add(1));
        }
    }
    Ok(())
}

/// The pairs of a batch that have bytes to copy, one at a time.
struct Pairs<'a, F: Fn(usize, &mut Job) -> Result<bool>> {
    n: usize,
    make: F,
    /// The copy of the pair at `at`.
    job: &'a mut Job,
    at: usize,
    /// Why that pair cannot be copied.
    error: Option<Error>,
}

impl<F: Fn(usize, &mut Job) -> Result<bool>> Transfers for Pairs<'_, F> {
    fn current(&mut self) -> &mut Transfer {
        &mut self.job.transfer
    }

    fn at(&self) -> usize {
        self.at
    }

    fn left(&self) -> usize {
        self.n.saturating_sub(self.at).saturating_sub(1)
    }

    /// Where source and destination share memory, the pair is copied alone.
    fn go_to(&mut self, index: usize) -> bool {
        self.error = None;
        for at in index..self.n {
            self.at = at;
            match (self.make)(at, self.job) {
                Ok(false) => {}
                Ok(true) => return self.job.scratch_nbytes.is_none(),
                Err(error) => {
                    self.error = Some(error);
                    return false;
                }
            }
        }
        self.at = self.n;
        false
    }
}

/// # Safety
/// Both are live.
#[inline(never)]
unsafe fn read(given: Given, args: [Arg; 2], options: &Options, job: &mut Job) -> Result<bool> {
    let mut pair = Pair::new(args);
    // SAFETY: the caller's word.
    unsafe { pair.read(given, options.rules())? };
    copy::check(&pair, options, job)
}

/// Bytes of a caller.
#[derive(Clone, Copy)]
pub struct Bytes {
    /// Where they are.
    pub first: *mut u8,
    /// How many.
    pub nbytes: u64,
    /// The argument with their number.
    pub nbytes_arg: Arg,
}

/// Bytes of a tensor's elements, packed.
fn packed_nbytes(tensor: &Snapshot) -> Result<u64> {
    layout::packed_nbytes(tensor.numel()?, dtype::item_bits(tensor.dtype))
}

/// Copies packed elements in row-major order to the pair's destination, which has been read.
///
/// # Safety
/// The bytes are readable, and the destination is live.
pub unsafe fn copy_from_bytes(bytes: Bytes, pair: &mut Pair, options: &Options) -> Result<()> {
    let Pair { src, dst, args: [_, target] } = pair;
    let needed = packed_nbytes(dst).of(*target)?;
    if bytes.nbytes != needed {
        let error = Error::new(if bytes.nbytes < needed { DLRS_BUF_SMALL } else { DLRS_BAD_ARG });
        let error =
            error.detail("nbytes is not the size of the packed elements\0Give exactly the limit.");
        let error = error.of(bytes.nbytes_arg);
        return Err(error.value_u64(bytes.nbytes).limit_u64(needed));
    }
    // SAFETY: as many bytes as the elements need; they are only read.
    unsafe { copy::host_view(dst.shape(), dst.dtype, (bytes.first, None), 0, src).of(*target)? };
    copy::copy(pair, options)
}

/// Copies the elements of the pair's source, which has been read, to packed ones in row-major
/// order. Bits of the last byte that belong to no element become 0.
///
/// # Safety
/// The bytes are writable, and the source is live.
pub unsafe fn copy_to_bytes(bytes: Bytes, pair: &mut Pair, options: &Options) -> Result<()> {
    let Pair { src, dst, args: [source, _] } = pair;
    let needed = packed_nbytes(src).of(*source)?;
    if bytes.nbytes < needed {
        let error = Error::new(DLRS_BUF_SMALL).of(bytes.nbytes_arg);
        let error =
            error.detail("the buffer is smaller than the elements\0Give one of the limit's bytes.");
        return Err(error.value_u64(bytes.nbytes).limit_u64(needed));
    }
    // SAFETY: as many bytes as the elements need.
    unsafe { copy::host_view(src.shape(), src.dtype, (bytes.first, None), 0, dst).of(*source)? };
    let bits = u128::from(src.numel()? as u64) * u128::from(dtype::item_bits(src.dtype));
    let kept = (bits % 8) as u32;
    // Unused bits are cleared last, so the elements must have been written by then.
    let enqueue_only = options.streams.enqueue_only && kept == 0;
    let streams = Streams { enqueue_only, ..options.streams };
    copy::copy(pair, &Options { streams, ..*options })?;
    if kept != 0 {
        let last = bytes.first.wrapping_add((needed as usize).wrapping_sub(1));
        // SAFETY: the last byte of elements that do not fill it, which is there: there are bits.
        unsafe { last.write(last.read() & ((1 << kept) - 1)) };
    }
    Ok(())
}
