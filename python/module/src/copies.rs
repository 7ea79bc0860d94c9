//! Copies in another order or place.

use super::arguments::method;
use super::tensor::{Held, This};
use crate::copy::{self, Options};
use crate::error::Result;
use crate::layout::{self, Order};
use crate::validate::Snapshot;
use dlpack_python::words::policy;
use dlpack_python::{Owned, detached};
use dlpack_tensor::tensor::Versioned;

const OPTIONS: &Options = &Options::DEFAULT;

/// The tensor that `make` makes of the elements of another one, calling nothing of Python.
pub fn derived(this: This, make: &mut dyn FnMut(&Snapshot) -> Result<Versioned>) -> Result<Owned> {
    let mut snapshot = Snapshot::new();
    this.live().read(OPTIONS.rules(), &mut snapshot)?;
    let nbytes = snapshot.nbytes()?;
    // SAFETY: what is made, here and in pickles.rs, is a tensor of ours with a reference to give;
    // none of them calls anything of Python.
    this.like(unsafe { Held::new(this.python, detached(this.python, nbytes, || make(&snapshot))?) })
}

/// A dense copy, on the same device.
pub fn copy_of(this: This, order: Order) -> Result<Owned> {
    derived(this, &mut |from| {
        let order = match order {
            Order::A if layout::is_contiguous(from.shape(), from.strides(), order) => Order::K,
            Order::A => Order::C,
            order => order,
        };
        copy::clone(from, order, from.device, OPTIONS)
    })
}

method!(
    /// copy($self, /, order='C')
    /// A dense copy on the same device, in the order 'C', 'F', 'A' ('F' if it is dense so, else
    /// 'C') or 'K' (that of the strides).
    /// >>> dlpack_rs.zeros((2, 3)).copy('F').strides
    /// (1, 2)
    copy, |this, call| (/ order *) {
        let order = call.order(order)?;
        copy_of(this, order)
    }
);
method!(
    /// contiguous($self, /, order='C')
    /// The same memory if it is dense in the order 'C', 'F', 'A' (either) or 'K' (any), else a
    /// copy.
    /// >>> dlpack_rs.zeros((2, 3)).T.contiguous().strides
    /// (2, 1)
    contiguous, |this, call| (/ order *) {
        let order = call.order(order)?;
        derived(this, &mut |from| {
            let tensor = this.live().tensor();
            copy::made(OPTIONS, &mut |job| {
                // SAFETY: a live tensor, from which `from` was read.
                unsafe { copy::contiguous(from, tensor, order, OPTIONS, job) }
            })
        })
    }
);
method!(
    /// is_contiguous($self, /, order='C')
    /// Whether it is dense in the order 'C', 'F', 'A' (either) or 'K' (any).
    /// >>> dlpack_rs.zeros((2, 3)).T.is_contiguous('F')
    /// True
    is_contiguous, |this, call| (/ order *) {
        let order = call.order(order)?;
        let mut snapshot = Snapshot::new();
        this.live().read(OPTIONS.rules(), &mut snapshot)?;
        let dense = layout::is_contiguous(snapshot.shape(), snapshot.strides(), order);
        call.python.PyBool_FromLong(dense.into())
    }
);
method!(
    /// to($self, /, device, *, copy=None)
    /// The tensor on a device: the same memory, or a copy. Pinned and managed memory is the CPU's
    /// too.
    ///
    /// copy: True always copies, False never (BufferError if one is needed), None if needed.
    /// >>> dlpack_rs.zeros(3).to('cpu', copy=True).is_copied
    /// True
    to, |this, call| (/ device * copy) {
        let device = call.device(call.needs(device, "a device")?)?;
        let policy = policy(call.python, copy)?;
        derived(this, &mut |from| {
            let tensor = this.live().tensor();
            copy::made(OPTIONS, &mut |job| {
                // SAFETY: a live tensor, from which `from` was read.
                unsafe { copy::to_device(from, tensor, device, policy, OPTIONS, job) }
            })
        })
    }
);
