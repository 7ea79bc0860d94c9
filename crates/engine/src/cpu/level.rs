//! The kernels in use: detected once, and settable by tests.
use core::ptr::{from_ref, null_mut};
use core::sync::atomic::{AtomicPtr, Ordering};

use dlpack_kernels::{Bits, Kernels};
pub use dlpack_kernels::{Level, detected};

/// The kernels in use: null at first.
static KERNELS: AtomicPtr<Kernels> = AtomicPtr::new(null_mut());

/// The kernels of the level in use.
pub(super) fn kernels() -> &'static Kernels {
    // SAFETY: null, or a table, which lives as long as the program.
    let known = unsafe { KERNELS.load(Ordering::Relaxed).as_ref() };
    known.unwrap_or_else(|| use_level(detected()))
}

#[cold]
fn use_level(level: Level) -> &'static Kernels {
    let kernels = level.kernels();
    KERNELS.store(from_ref(kernels).cast_mut(), Ordering::Relaxed);
    kernels
}

/// Copies, unpacks or packs items that are not whole bytes.
///
/// # Safety
/// All bytes that are accessed, as documented at [`Bits`]' fields, are readable or writable.
pub unsafe fn bits(bits: &Bits) {
    // SAFETY: its items are readable or writable; the processor has the level in use.
    unsafe { (kernels().bits)(bits) }
}

/// The level in use.
pub fn level() -> Level {
    kernels().level
}

/// Makes every later copy use `level`, for tests and measurements; false, without effect, if this
/// processor does not support it.
pub fn set_level(level: Level) -> bool {
    let can = level.is_here();
    if can {
        use_level(level);
    }
    can
}
