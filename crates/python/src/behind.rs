//! The block of ours behind an array of NumPy that is over our memory. A tensor that holds the
//! block in place of the array is released in a loop; through the array each release would be
//! inside the one before, and a long chain of hand-overs would need as much stack.

use core::{ffi::CStr, ptr::NonNull, sync::atomic::Ordering::Relaxed};

use crate::constants::{self, Constant};
use crate::error::Result;
use crate::tensor::block::{self, Block, Owner};
use crate::tensor::wrap::spec_of;
use crate::validate::{Level, Rules, Snapshot};
use crate::wrap::Reference;
use crate::{Object, Owned, Python, capsule, home, payload, pointer, raise};

/// What NumPy keeps of a versioned import. A legacy one is read-only there, which no legacy struct
/// can say again: a chain has one at most.
const KEPT: &CStr = c"numpy_dltensor_versioned";

/// `tensor`, which `object` exported, or in its place one that keeps a block of ours, in whose
/// memory all its elements are.
#[inline(never)]
pub fn shortened(object: Object, tensor: Reference) -> Result<Reference> {
    const RULES: Rules = Rules::of(Level::DLRS_LEVEL_LAYOUT);
    let python = tensor.python;
    let home = home::here(python)?;
    let lent = capsule::LENT.load(Relaxed) || home.lender.kept().is_some();
    // Before, nothing is over our memory. Only a type made in C, as NumPy's own, exports nothing
    // but what it holds; `check_unmasked` has seen it.
    if !lent || home.unmasked.load(Relaxed) != object.type_of().as_ptr() {
        return Ok(tensor);
    }
    let Some((_kept, base)) = raise::known(python, behind(python, object))?.flatten() else {
        return Ok(tensor);
    };
    let (mut whole, mut part) = (Snapshot::new(), Snapshot::new());
    // SAFETY: `base` is live: the array keeps it.
    let read = unsafe { whole.read_managed(Block::versioned(base).as_ptr(), RULES) };
    let read = read.and(tensor.read(RULES, &mut part));
    let [inner, outer] = [&part, &whole].map(|tensor| {
        let (low, high) = tensor.byte_extent;
        [low, high].map(|byte| tensor.first() as i128 + i128::from(byte))
    });
    let inside = part.device == whole.device && outer[0] <= inner[0] && inner[1] <= outer[1];
    if read.is_err() || !(inside || part.empty) {
        return Ok(tensor); // it is refused later, or the elements are elsewhere
    }
    let owner = Owner::Versioned(Block::versioned(base));
    // SAFETY: `base` is live; what is made of it is ours.
    unsafe {
        let block = block::shared(&spec_of(&part, part.flags, owner), base)?;
        Ok(Reference::new(python, Block::versioned(block)))
    }
}

/// The block, and the object that keeps it.
fn behind(python: Python, array: Object) -> Result<Option<(Owned, NonNull<Block>)>> {
    let name = constants::get(python, Constant::Base)?;
    let Some(mut base) = python.attribute(array, name)? else { return Ok(None) };
    if base.object() == python._Py_NoneStruct() {
        return Ok(None);
    }
    // NumPy's views are of the array that is no view.
    if base.object().type_of() == array.type_of() {
        let Some(next) = python.attribute(base.object(), name)? else { return Ok(None) };
        base = next;
    }
    let block = match pointer(python, base.object(), KEPT) {
        // SAFETY: the capsule's name tells that it is a live tensor.
        Some(tensor) => unsafe { block::of_versioned(tensor) },
        None => payload::lent_block(python, base.object())?,
    };
    Ok(block.map(|block| (base, block)))
}
