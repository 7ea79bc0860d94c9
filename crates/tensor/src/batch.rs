//! Batched copies.

use crate::backend::{Transfer, Transfers};
use crate::copy::{self, Given, Job, Options, Pair, Scratch, route};
use crate::error::{Arg, Error, Of, Result};

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
    // SAFETY: both tensors of every pair are live and stay as they are during the call.
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
        // SAFETY: every pair is live, and no destination element is a source's; scratch memory is
        // used only where it is large enough.
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
    // SAFETY: the structs of both tensors are live, and so are their shape and strides.
    unsafe { pair.read(given, options.rules())? };
    copy::check(&pair, options, job)
}
