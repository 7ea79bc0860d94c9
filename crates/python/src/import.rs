//! Any Python object that holds a tensor, taken in.
//!
//! The ways, in this order: the exchange API of its type, `__dlpack__` with all keywords that are
//! needed, with fewer where it does not know them, a capsule itself, the buffer protocol, the array
//! interfaces. What comes out of any of them is checked, and served, by
//! [`dlpack_tensor::import`]. A copy that no backend can make is requested from the producer.

mod call;
mod serve;

use core::ffi::c_ulong;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::Relaxed;

use super::constants::{self, Constant};
use super::wrap::Reference;
use super::{array_interface, behind, buffer, capsule, exchange, home, stream};
use crate::abi::*;
use crate::error::{Error, Result, Status::*};
use crate::tensor::block;

use crate::{KindOf, Object, Python, comes_through, is, is_a, known, meanwhile, refused};
pub use call::Wanted;

/// The ways, as bits.
pub mod protocol {
    /// The exchange API of the type.
    pub const EXCHANGE_API: u32 = 1 << 0;
    /// `__dlpack__`
    pub const DUNDER_DLPACK: u32 = 1 << 1;
    /// A capsule itself.
    pub const CAPSULE: u32 = 1 << 2;
    /// The buffer protocol.
    pub const BUFFER: u32 = 1 << 3;
    /// The array interfaces.
    pub const ARRAY_INTERFACE: u32 = 1 << 4;
    /// Any.
    pub const ALL: u32 = (1 << 5) - 1;
}

/// Takes the tensor of `object` in.
pub fn import(python: Python, object: Object, wanted: &Wanted) -> Result<Reference> {
    serve::serve(object, acquire(python, object, wanted)?, wanted)
}

impl Wanted {
    /// Whether one of some protocols may be tried.
    fn may(&self, ways: u32) -> bool {
        self.protocols & ways != 0
    }
}

/// The tensor as the object exports it.
fn acquire(python: Python, object: Object, wanted: &Wanted) -> Result<Reference> {
    let home = home::here(python)?;
    check_unmasked(python, home, object)?;
    // It cannot be told where the tensor is wanted.
    let by_table = wanted.may(protocol::EXCHANGE_API) && wanted.import.device.is_none();
    if by_table && let Some(tensor) = exchange::from_object(python, home, object, wanted.stream)? {
        return Ok(tensor);
    }
    let called = match wanted.may(protocol::DUNDER_DLPACK) {
        true => call::call_dlpack(python, home, object, wanted),
        false => Ok(None),
    };
    let (tensor, named) = match called {
        Ok(Some((capsule, named))) => {
            (capsule::consume(python, capsule.object(), wanted.legacy_flags)?, named)
        }
        Ok(None) => other_ways(python, object, wanted)?,
        Err(refusal) => (refused_by_numpy(python, object, wanted, refusal)?, true),
    };
    // SAFETY: a live tensor.
    let ours = unsafe { block::of_versioned(tensor.tensor()) }.is_some();
    // What one of ours says of its elements is so.
    if !by_table && !ours {
        exchange::check_literal(python, home, object)?;
    }
    if !named {
        order_unnamed(&tensor, wanted)?;
    }
    if ours { Ok(tensor) } else { behind::shortened(object, tensor) }
}

/// Refuses an array some of whose elements are no values, as numpy.ma's: no protocol says so. Its
/// type has a `mask`, and a method `filled`.
pub fn check_unmasked(python: Python, home: &home::Home, object: Object) -> Result<()> {
    const MADE_BY_CLASS: c_ulong = 1 << 9; // Py_TPFLAGS_HEAPTYPE: the others are static in C
    if home.unmasked.load(Relaxed) == object.type_of().as_ptr() {
        return Ok(());
    }
    let kind = python.PyObject_Type(object)?;
    for name in [Constant::Filled, Constant::Mask] {
        let name = constants::of(python, home, name)?;
        if known(python, python.type_has(kind.object(), name))? != Some(true) {
            if !is_a(python, object, MADE_BY_CLASS) {
                home.unmasked.store(kind.as_ptr(), Relaxed);
            }
            return Ok(());
        }
    }
    let text = format_args!(
        "{} is an array with a mask, which DLPack cannot say: take its .data, or its .filled()",
        KindOf(python, object)
    );
    Err(refused(python, python.PyExc_BufferError(), text))
}

/// The tensor of an array, or of a number, whose dtype NumPy refuses to export, because only
/// ml_dtypes knows it, or the refusal, which stays set.
#[cold]
fn refused_by_numpy(
    python: Python,
    object: Object,
    wanted: &Wanted,
    refusal: Error,
) -> Result<Reference> {
    let may = wanted.may(protocol::ARRAY_INTERFACE) && refusal.status() == DLRS_CALLBACK;
    let refuses = |kind| is(python, kind);
    if !may || ![Python::PyExc_BufferError, Python::PyExc_TypeError].into_iter().any(refuses) {
        return Err(refusal);
    }
    match meanwhile(python, comes_through, || array_interface::from_named(python, object)) {
        Ok(Some(tensor)) => {
            python.clear();
            behind::shortened(object, tensor)
        }
        _ => Err(refusal),
    }
}

/// The tensor, and whether the stream was passed to its producer.
#[cold]
fn other_ways(python: Python, object: Object, wanted: &Wanted) -> Result<(Reference, bool)> {
    if wanted.may(protocol::CAPSULE) && capsule::is_of_tensor(python, object) {
        return Ok((capsule::consume(python, object, wanted.legacy_flags)?, false));
    }
    if wanted.may(protocol::BUFFER) {
        match buffer::from_object(python, object) {
            Ok(Some(tensor)) => return Ok((tensor, true)),
            Ok(None) => {}
            Err(refusal) => {
                return Ok((refused_by_numpy(python, object, wanted, refusal)?, true));
            }
        }
    }
    if wanted.may(protocol::ARRAY_INTERFACE)
        && let Some(tensor) = array_interface::from_object(python, object, wanted.stream)?
    {
        return Ok((tensor, true));
    }
    let what = match wanted.may(protocol::BUFFER | protocol::ARRAY_INTERFACE) {
        false => "object has no attribute '__dlpack__'",
        true => {
            "has no __dlpack__, no buffer and no array interface: give an array, such as \
             numpy.asarray() makes of it"
        }
    };
    // The array API standard's exception for objects without `__dlpack__`.
    let text = format_args!("{} {what}", KindOf(python, object));
    Err(refused(python, python.PyExc_AttributeError(), text))
}

/// Makes the stream that is wanted wait for a tensor whose producer was not told of it, and which
/// is therefore ready on its device's default stream.
fn order_unnamed(tensor: &Reference, wanted: &Wanted) -> Result<()> {
    if wanted.stream == stream::NONE {
        return Ok(());
    }
    let DLTensor { device, data, .. } = tensor.description()?;
    // A copy to another device comes after that stream by itself.
    let stays = wanted.import.device.is_none_or(|target| target == device);
    if !stays || !stream::has_streams(device.device_type) {
        return Ok(());
    }
    let consumer = stream::from_python(wanted.stream, device.device_type)?;
    // SAFETY: `consumer` was read as a stream of `device`; NULL is its default stream.
    unsafe { stream::order(device, data, consumer, null_mut()) }
}
