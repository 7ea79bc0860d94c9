//! Describes how a copy would be done, as text. All decisions are those of the functions that copy.

use core::fmt::{self, Write};

use super::job::{Job, check, half, halve};
use super::options::Options;
use super::pair::Pair;
use super::route;
use crate::backend::Transfer;
use crate::error::Result;
use crate::integer_text::unsigned;

/// How a copy would be done.
pub struct Explained {
    moves: bool,
    job: Job,
    options: Options,
    ways: [Option<route::Way>; 2],
}

/// Plans a copy without executing it, with the same errors.
pub fn explain(pair: &Pair, options: &Options, explained: &mut Explained) -> Result<()> {
    explained.moves = check(pair, options, &mut explained.job)?;
    explained.options = *options;
    explained.ways = [explained.way(false)?, explained.way(true)?];
    Ok(())
}

impl Explained {
    /// An empty one.
    #[inline(always)] // in its place
    pub const fn none() -> Explained {
        let (options, ways) = (Options::DEFAULT, [None, None]);
        Explained { moves: false, job: Job::none(), options, ways }
    }

    fn twice(&self) -> bool {
        self.job.scratch_nbytes.is_some()
    }

    /// The first of two copies through a temporary, or `back` the second. Any address with the real
    /// one's alignment will do for the temporary. False if there is nothing to copy.
    fn fill(&self, back: bool, transfer: &mut Transfer) -> bool {
        let memory = core::ptr::without_provenance_mut(4096);
        *transfer = self.job.transfer;
        if self.twice() {
            halve(transfer, memory, back);
        }
        self.moves && (self.twice() || !back)
    }

    fn way(&self, back: bool) -> Result<Option<route::Way>> {
        let mut transfer = Transfer::none();
        match self.fill(back, &mut transfer) {
            true if self.twice() => route::explain(&transfer, &half(&self.options, back)).map(Some),
            true => route::explain(&transfer, &self.options).map(Some),
            false => Ok(None),
        }
    }

    fn write_way(&self, way: &route::Way, back: bool, out: &mut dyn Write) -> fmt::Result {
        let mut transfer = Transfer::none();
        if !self.fill(back, &mut transfer) {
            return Ok(());
        }
        out.write_str(if back { "; then " } else { "" })?;
        way.write(&transfer, &self.options.parallel, out)
    }

    /// One line of text.
    pub fn write(&self, out: &mut impl Write) -> fmt::Result {
        if let Some(nbytes) = self.job.scratch_nbytes {
            write!(out, "twice, through {} bytes of compact memory; ", unsigned(nbytes))?;
        }
        if !self.moves {
            out.write_str("nothing to move")?;
        }
        for (way, back) in self.ways.iter().zip([false, true]) {
            let Some(way) = way else { break };
            self.write_way(way, back, out)?;
        }
        Ok(())
    }
}
