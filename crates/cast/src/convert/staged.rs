//! Conversion of numbers that are not contiguous, through a contiguous staging buffer: the copy
//! engine gathers and scatters them, piece by piece.
use super::cursor::Cast;
use super::direct;
use super::pipeline::{Pipeline, TILE};
use crate::cpu::{self, Parallel};
use crate::pieces::{self, Pieces};
use crate::plan::{Dim, Item, Plan};
use crate::platform;

/// Numbers from which staging pays: its plans and its memory take about as long as gathering the
/// numbers of four tiles one by one, in any layout.
const LEAST: u64 = 4 * TILE as u64;

/// Whether staging pays.
pub(super) fn pays(cast: &Cast) -> bool {
    let bytes = cast.src.bits >= 8 && cast.dst.bits >= 8;
    let rows = cast.plan.ndim() == 0 || cast.plan.inner().n >= TILE as i64;
    let dense = rows && long(cast, false) && long(cast, true);
    !cast.merge && bytes && cast.plan.count() >= LEAST && !dense
}

/// Converts through the buffer; false if there is no memory for it.
///
/// # Safety
/// As [`super::run`], on the calling thread.
pub(super) unsafe fn convert(cast: &Cast, pipeline: &Pipeline) -> bool {
    let [from, to] = [cast.src, cast.dst].map(|side| side.kind.nbytes());
    // The numbers of a piece, in their own memory and in both buffers, stay in L2.
    let piece = cpu::second() / 4;
    let most = (piece >> from.max(to).trailing_zeros()).min(cast.plan.count() as usize);
    let Some(memory) = platform::memory(most * (from + to)) else { return false };
    let gathered = memory.as_ptr();
    let converted = (!long(cast, true)).then_some(gathered.wrapping_add(most * from));
    let numbers = scaled(&cast.plan, Item::Bytes(1), |bits| bits >> 3);
    let pieces = Pieces::new(&numbers, most);
    for piece in (0..).map_while(|i| pieces.cut(i)) {
        let mut into = Plan { item: Item::Bytes(from), ..piece };
        pieces::halve(&mut into, gathered, false);
        let mut compact =
            Cast { plan: scaled(&piece, cast.plan.item, |bytes| bytes << 3), ..*cast };
        pieces::compact(&mut compact.plan, gathered, true, 8 * from as i64);
        if let Some(converted) = converted {
            pieces::compact(&mut compact.plan, converted, false, 8 * to as i64);
        }
        compact.plan.simplify();
        // SAFETY: a piece's numbers are readable or writable, and the memory has room for them,
        // twice. A copy on the calling thread cannot fail.
        unsafe {
            let _ = cpu::copy_simple(&into, &Parallel::ALONE);
            direct(&compact, pipeline);
            if let Some(converted) = converted {
                let mut back = Plan { item: Item::Bytes(to), ..piece };
                pieces::halve(&mut back, converted, true);
                let _ = cpu::copy_simple(&back, &Parallel::ALONE);
            }
        }
    }
    // SAFETY: it came from `platform::memory`, and nothing refers to it any more.
    unsafe { platform::give_back(memory) };
    true
}

/// A plan in another unit.
fn scaled(plan: &Plan, item: Item, unit: impl Fn(i64) -> i64) -> Plan {
    let mut scaled = Plan { item, ..*plan };
    for dim in scaled.dims.iter_mut() {
        *dim = Dim { n: dim.n, src: unit(dim.src), dst: unit(dim.dst) };
    }
    scaled
}

/// Whether at least a tile of numbers is contiguous, in the destination or in the source.
fn long(cast: &Cast, in_dst: bool) -> bool {
    let mut run = 1i64;
    let bits = 8 * if in_dst { cast.dst } else { cast.src }.kind.nbytes() as i64;
    for dim in cast.plan.dims.iter().rev() {
        let stride = if in_dst { dim.dst } else { dim.src };
        if stride != run.saturating_mul(bits) {
            break;
        }
        run = run.saturating_mul(dim.n);
    }
    run >= TILE as i64
}
