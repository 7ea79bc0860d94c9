//! The pairs of a batch that a backend executes together.

use super::ends::{Ends, memories};
use super::options::Options;
use crate::abi::DLDevice;
use crate::backend::{Transfer, Transfers};
use crate::ready::Ready;

/// The transfers that are ordered and waited for as the first one, which is current.
pub(super) struct Alike<'a> {
    all: &'a mut dyn Transfers,
    pub(super) options: &'a Options,
    pub(super) ends: Ends,
    pub(super) sides: [(DLDevice, Option<&'static Ready>); 2],
    /// The first one has been enqueued.
    pub(super) begun: bool,
    /// The first one goes alone: another way may be better for the others.
    pub(super) alone: bool,
    /// A step after the copies failed: its error is no reason for another way.
    pub(super) over: bool,
}

impl Alike<'_> {
    pub(super) fn of<'a>(
        all: &'a mut dyn Transfers,
        ends: Ends,
        options: &'a Options,
    ) -> Alike<'a> {
        let sides = sides(all.current());
        Alike { all, options, ends, sides, begun: false, alone: false, over: false }
    }
}

fn sides(transfer: &Transfer) -> [(DLDevice, Option<&'static Ready>); 2] {
    [&transfer.src, &transfer.dst].map(|side| (side.device, side.ready))
}

impl Transfers for Alike<'_> {
    fn current(&mut self) -> &mut Transfer {
        self.all.current()
    }

    fn at(&self) -> usize {
        self.all.at()
    }

    fn left(&self) -> usize {
        if self.alone { 0 } else { self.all.left() }
    }

    fn go_to(&mut self, index: usize) -> bool {
        self.begun = true;
        if !self.all.go_to(index) || self.alone {
            return false;
        }
        let transfer = self.all.current();
        let [src, dst] = memories(transfer);
        let ends = Ends::of(&src, &dst, &self.options.streams);
        sides(transfer) == self.sides && ends.is_ok_and(|ends| ends == self.ends)
    }
}
