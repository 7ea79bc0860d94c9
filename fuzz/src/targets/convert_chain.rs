//! A handful of live tensors, created, wrapped, shared, viewed, converted, imported, copied and
//! released in any order, compared with a model that counts references. After every step exactly
//! the due deleters and callbacks have run, once and in order, and flags and counts equal the
//! model's. Deleters free memory, so that a later access is detected.

use std::ptr::{NonNull, null, null_mut};

use crate::layout::compact;
use crate::lent::{Foreign, Witness, called, delete, forget, made, record};
use crate::{Layout, Reader, call};
use dlpack_rs::abi::*;
use dlpack_rs::capi::{alloc::*, chain::*, convert::*, copy::*, query::*, share::*};
use dlpack_rs::capi::{validate::*, view::*, wrap::*};
use dlpack_rs::error::Status::*;
use dlpack_rs::validate::{Level, Rules, Snapshot};

type Managed = DLManagedTensorVersioned;

const CPU: DLDevice = DLDevice { device_type: 1, device_id: 0 };
const READ_ONLY: u64 = DLPACK_FLAG_BITMASK_READ_ONLY;
const IS_COPIED: u64 = DLPACK_FLAG_BITMASK_IS_COPIED;
const PADDED: u64 = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
/// Tensors alive at once, and elements of a copy.
const HANDLES_MOST: usize = 8;
const COPY_MOST: i64 = 4096;

/// The owner of memory: a block of the library's, or a foreign tensor.
struct Node {
    own: bool,
    references: i64,
    flags: u64,
    parent: Option<usize>,
    /// Runs when the memory is freed, if it is this node's.
    freed: Option<u32>,
    /// Callbacks before and after that, with their numbers.
    chains: [Vec<(u32, *mut Witness)>; 2],
}

#[derive(Clone, Copy)]
enum Tensor {
    Versioned(*mut Managed),
    Legacy(*mut DLManagedTensor),
}

use Tensor::*;

#[derive(Default)]
struct Machine {
    nodes: Vec<Node>,
    handles: Vec<(Tensor, usize)>,
    expected: Vec<u32>,
    ids: u32,
}

/// The description of a new tensor.
fn layout(reader: &mut Reader) -> Layout {
    let shape: Box<[i64]> = (0..reader.below(4)).map(|_| reader.of(&[2, 1, 3, 4, 0])).collect();
    let (flags, dtype) = (reader.below(8) as u64, reader.legal_dtype());
    // Padding is a property of numbers below whole bytes: of others the flag is left out.
    let whole = dtype.bits.is_multiple_of(8);
    let flags = if whole { flags & !PADDED } else { flags };
    Layout { dtype, flags, strides: compact(&shape), shape }
}

impl Machine {
    fn witness(&mut self, layout: Option<&Layout>) -> Witness {
        self.ids += 1;
        let nbytes = layout.map_or(0, |layout| layout.extent().1);
        Witness { id: self.ids, memory: vec![0x11; nbytes].into() }
    }

    fn add(&mut self, tensor: Tensor, node: Node) {
        self.handles.push((tensor, self.nodes.len()));
        self.nodes.push(node);
    }

    /// A new node that is the only reference to its memory, or references `parent`.
    fn node(own: bool, flags: u64, parent: Option<usize>, freed: Option<u32>) -> Node {
        Node { own, references: 1, flags, parent, freed, chains: Default::default() }
    }

    fn new_tensor(&mut self, reader: &mut Reader) {
        let layout = layout(reader);
        let options = dlrs_alloc_options {
            struct_size: size_of::<dlrs_alloc_options>() as u32,
            align_bytes: reader.of(&[0, 1, 8, 64, 256]),
            flags: layout.flags & PADDED,
            allocator: null(),
            order: reader.of(&[0, 'C' as i32]),
            reserved: 0,
            strides: null(),
        };
        let options_used = if reader.one_in(2) { &raw const options } else { null() };
        let flags = if options_used.is_null() { 0 } else { options.flags };
        let (shape, ndim) = (layout.shape.as_ptr(), layout.shape.len() as i32);
        // SAFETY: `ndim` extents, live options.
        let tensor = made(|out, error| unsafe {
            dlrs_tensor_new(shape, ndim, layout.dtype, CPU, options_used, out, error)
        });
        let tensor = Versioned(tensor.unwrap().as_ptr());
        self.add(tensor, Self::node(true, flags, None, None));
    }

    fn wrap(&mut self, reader: &mut Reader) {
        let layout = layout(reader);
        let mut witness = Box::new(self.witness(Some(&layout)));
        let id = witness.id;
        let tensor = layout.tensor(witness.memory.as_mut_ptr(), reader.below(9), CPU);
        let context = Box::into_raw(witness);
        // SAFETY: the memory lives until the callback is called.
        let tensor = made(|out, error| unsafe {
            dlrs_tensor_wrap(&tensor, layout.flags, Some(called), context.cast(), out, error)
        });
        let tensor = Versioned(tensor.unwrap().as_ptr());
        self.add(tensor, Self::node(true, layout.flags, None, Some(id)));
    }

    /// A foreign tensor.
    fn foreign(&mut self, legacy: bool, reader: &mut Reader) {
        let layout = layout(reader);
        let mut witness = self.witness(Some(&layout));
        let (id, flags) = (witness.id, layout.flags);
        let (minor, bare) = (reader.below(4) as u32, reader.one_in(3));
        let mut dl_tensor = layout.tensor(witness.memory.as_mut_ptr(), reader.below(9), CPU);
        if bare && (legacy || minor < 2) {
            dl_tensor.strides = null_mut();
        }
        let manager_ctx = null_mut();
        let tensor = if legacy {
            let managed = DLManagedTensor { dl_tensor, manager_ctx, deleter: Some(delete) };
            Legacy(Box::into_raw(Box::new(Foreign { managed, layout, witness })).cast())
        } else {
            let version = DLPackVersion { major: 1, minor };
            let managed = Managed { version, manager_ctx, deleter: Some(delete), flags, dl_tensor };
            Versioned(Box::into_raw(Box::new(Foreign { managed, layout, witness })).cast())
        };
        let flags = if legacy { flags & PADDED } else { flags };
        self.add(tensor, Self::node(false, flags, None, Some(id)));
    }

    /// The documented effects of releasing a reference, in order.
    fn let_go(&mut self, place: usize) {
        let node = &mut self.nodes[place];
        node.references -= 1;
        assert!(node.references >= 0);
        if node.references > 0 {
            return;
        }
        let (parent, freed, chains) = (node.parent, node.freed, std::mem::take(&mut node.chains));
        let [before, after] = chains.map(|chain| chain.into_iter().map(|(id, _)| id));
        self.expected.extend(before.rev());
        self.expected.extend(freed);
        if let Some(parent) = parent {
            self.let_go(parent);
        }
        self.expected.extend(after.rev());
    }

    fn retain(&mut self, at: usize) {
        let (Versioned(tensor), place) = self.handles[at] else { return };
        // SAFETY: a live tensor.
        let more = made(|out, error| unsafe { dlrs_retain(tensor, out, error) });
        let node = &mut self.nodes[place];
        if !node.own {
            assert_eq!(more, Err(DLRS_FOREIGN as i32));
            return;
        }
        assert_eq!(more, Ok(NonNull::new(tensor).unwrap()));
        node.references += 1;
        node.flags &= !IS_COPIED;
        self.handles.push((Versioned(tensor), place));
    }

    fn release(&mut self, at: usize) {
        let (tensor, place) = self.handles.swap_remove(at);
        self.let_go(place);
        // SAFETY: a live tensor, whose reference is released.
        unsafe {
            match tensor {
                Versioned(tensor) => dlrs_release(tensor),
                Legacy(tensor) => dlrs_release_legacy(tensor),
            }
        }
    }

    fn view(&mut self, at: usize, reader: &mut Reader) {
        let (Versioned(base), place) = self.handles[at] else { return };
        let numbers: Vec<[i64; 6]> = (0..3).map(|_| [(); 6].map(|()| values(reader))).collect();
        let step = |array: &[i64; 6], reader: &mut Reader| dlrs_view_step {
            struct_size: size_of::<dlrs_view_step>() as u32,
            op: reader.below(18) as i32 + 1,
            axis: if reader.one_in(8) { DLRS_ALL_AXES } else { reader.below(7) as i32 - 3 },
            other_axis: reader.below(7) as i32 - 3,
            ndim: reader.below(4) as i32,
            dtype: reader.legal_dtype(),
            start: reader.number(-3, 5),
            stop: reader.number(-3, 5),
            step: reader.number(-2, 3),
            shape: array.as_ptr(),
            strides: array[3..].as_ptr(),
        };
        let steps: Vec<_> = numbers.iter().map(|array| step(array, reader)).collect();
        let count = reader.below(4) as u64;
        // SAFETY: a live tensor, and steps whose arrays hold three values.
        let view =
            made(|out, error| unsafe { dlrs_view_apply(base, steps.as_ptr(), count, out, error) });
        let Ok(view) = view else { return };
        assert!(self.nodes[place].own, "a view of a foreign tensor");
        // SAFETY: both are live.
        let (view, flags) = unsafe {
            assert!(inside(base, view.as_ptr()), "a view of bytes that are not its base's");
            (view.as_ptr(), (*view.as_ptr()).flags)
        };
        // What has been of whole bytes once is not padded.
        let whole = |step: &dlrs_view_step| {
            step.op == dlrs_view_op::DLRS_VIEW_BITCAST as i32 && step.dtype.bits.is_multiple_of(8)
        };
        let whole = steps.iter().take(count as usize).any(whole);
        let node = &mut self.nodes[place];
        node.flags &= !IS_COPIED;
        node.references += 1;
        let due = if whole { node.flags & !PADDED } else { node.flags };
        assert!(flags == due || flags == due | READ_ONLY);
        self.add(Versioned(view), Self::node(true, flags, Some(place), None));
    }

    fn make_legacy(&mut self, at: usize, reader: &mut Reader) {
        let (Versioned(mut tensor), place) = self.handles[at] else { return };
        let policy = reader.below(4) as i32;
        let node = &self.nodes[place];
        let (own, read_only) = (node.own, node.flags & READ_ONLY != 0);
        let copies = read_only && policy == 2;
        if copies && !copyable(tensor) {
            return;
        }
        // SAFETY: a live tensor in a variable.
        let legacy =
            made(|out, error| unsafe { dlrs_to_legacy_take(&mut tensor, policy, out, error) });
        let Ok(legacy) = legacy else {
            assert!(!tensor.is_null(), "taken by a failure");
            let fine = !read_only && policy < 3 && node.flags & PADDED == 0;
            assert!(!fine, "{legacy:?}");
            return;
        };
        assert!(tensor.is_null() && policy < 3 && (!read_only || policy > 0));
        self.replace(at, Legacy(legacy.as_ptr()), own, copies, None);
    }

    fn make_versioned(&mut self, at: usize, reader: &mut Reader) {
        let (Legacy(mut tensor), place) = self.handles[at] else { return };
        let node = &self.nodes[place];
        let flags = node.flags & PADDED | reader.below(4) as u64;
        let same = node.own && node.flags == flags;
        // SAFETY: a live tensor in a variable.
        let versioned =
            made(|out, error| unsafe { dlrs_from_legacy_take(&mut tensor, flags, out, error) });
        assert!(tensor.is_null());
        self.replace(at, Versioned(versioned.unwrap().as_ptr()), same, false, Some(flags));
    }

    fn import(&mut self, at: usize, reader: &mut Reader) {
        let (Versioned(mut tensor), place) = self.handles[at] else { return };
        let options = dlrs_import_options {
            struct_size: size_of::<dlrs_import_options>() as u32,
            level: reader.below(4) as i32,
            copy: reader.below(3) as i32 - 1,
            order: reader.of(&[0, 'C' as i32, 'F' as i32, 'K' as i32]),
            align_bytes: 0,
            writable: reader.below(2) as i32,
            copy_options: null(),
            device_types: reader.of(&[0, 1 << 1, u64::MAX]),
            ranks: 0,
            dtypes: null(),
            dtypes_count: 0,
        };
        if !copyable(tensor) {
            return;
        }
        let (mut dense, node) = (1, &self.nodes[place]);
        // SAFETY: a live tensor.
        unsafe {
            let asked = &raw const (*tensor).dl_tensor;
            let order = if options.order == 0 { 'A' as i32 } else { options.order };
            assert_eq!(call(|error| dlrs_is_contiguous(asked, order, &mut dense, error)), 0);
        }
        let lacking = options.writable != 0 && node.flags & READ_ONLY != 0
            || options.order != 0 && dense == 0;
        let own = node.own;
        let copies = options.copy == 1 || lacking;
        // SAFETY: as above.
        let taken =
            made(|out, error| unsafe { dlrs_import_take(&mut tensor, &options, out, error) });
        let Ok(taken) = taken else {
            assert!(!tensor.is_null(), "taken by a failure");
            return;
        };
        assert!(tensor.is_null() && (!copies || options.copy >= 0));
        self.replace(at, Versioned(taken.as_ptr()), own, copies, None);
    }

    /// The reference was replaced: of the same node, of a copy, or of a box around it.
    fn replace(&mut self, at: usize, now: Tensor, same: bool, copy: bool, flags: Option<u64>) {
        let place = self.handles[at].1;
        let old = self.nodes[place].flags;
        self.handles.swap_remove(at);
        if copy {
            self.let_go(place);
            self.add(now, Self::node(true, old & PADDED | IS_COPIED, None, None));
        } else if same {
            self.handles.push((now, place));
        } else {
            self.add(now, Self::node(true, flags.unwrap_or(old), Some(place), None));
        }
    }

    fn attach(&mut self, at: usize, after: bool) {
        let (Versioned(tensor), place) = self.handles[at] else { return };
        let witness = self.witness(None);
        let (id, context) = (witness.id, Box::into_raw(Box::new(witness)));
        let node = &mut self.nodes[place];
        // SAFETY: a live tensor, and a context that its one call frees.
        let status = call(|error| unsafe {
            dlrs_attach(tensor, Some(called), context.cast(), after.into(), error)
        });
        if node.own {
            assert_eq!(status, 0);
            node.chains[usize::from(after)].push((id, context));
            return;
        }
        assert_eq!(status, DLRS_FOREIGN as i32);
        // SAFETY: it has no other reference.
        drop(unsafe { Box::from_raw(context) });
    }

    fn detach(&mut self, at: usize, reader: &mut Reader) {
        let (Versioned(tensor), place) = self.handles[at] else { return };
        let chain = &mut self.nodes[place].chains[reader.below(2)];
        let found = if chain.is_empty() { None } else { Some(reader.below(chain.len())) };
        let context = found.map_or(null_mut(), |found| chain.remove(found).1);
        // SAFETY: a live tensor.
        let status =
            call(|error| unsafe { dlrs_detach(tensor, Some(called), context.cast(), error) });
        assert_eq!(status == 0, found.is_some());
        if found.is_some() {
            // SAFETY: it is owned again.
            drop(unsafe { Box::from_raw(context) });
        }
    }

    fn set_flags(&mut self, at: usize, reader: &mut Reader) {
        let (Versioned(tensor), place) = self.handles[at] else { return };
        let (set, clear) = (reader.below(16) as u64, reader.below(16) as u64);
        let node = &mut self.nodes[place];
        let changed = set & !node.flags | clear & node.flags;
        let sole = node.references == 1 && node.parent.is_none();
        let expected = if !node.own {
            DLRS_FOREIGN
        } else if (set | clear) > 7 || set & clear != 0 || changed & PADDED != 0 {
            DLRS_FLAGS
        } else if set & changed & IS_COPIED != 0 && !sole {
            DLRS_REFCOUNT
        } else if clear & changed & READ_ONLY != 0 && !sole {
            DLRS_READ_ONLY
        } else {
            node.flags ^= changed;
            DLRS_OK
        };
        // SAFETY: a live tensor.
        let status = call(|error| unsafe { dlrs_set_flags(tensor, set, clear, error) });
        assert_eq!(status, expected as i32);
    }

    fn copy(&mut self, at: usize, reader: &mut Reader) {
        let (Versioned(tensor), place) = self.handles[at] else { return };
        if !copyable(tensor) {
            return;
        }
        let order = reader.of(&[0, 'C' as i32, 'F' as i32, 'K' as i32]);
        // SAFETY: a live tensor.
        let copy = made(|out, error| unsafe {
            match order {
                0 => dlrs_clone(tensor, CPU, null(), out, error),
                order => dlrs_contiguous(tensor, order, null(), out, error),
            }
        });
        let Ok(copy) = copy else { return };
        let node = &mut self.nodes[place];
        if order != 0 && copy.as_ptr() == tensor {
            node.references += 1;
            node.flags &= !IS_COPIED;
            self.handles.push((Versioned(tensor), place));
            return;
        }
        let flags = node.flags & PADDED | IS_COPIED;
        self.add(Versioned(copy.as_ptr()), Self::node(true, flags, None, None));
    }

    fn step(&mut self, reader: &mut Reader) {
        let op = reader.below(16);
        if self.handles.is_empty() || op < 4 && self.handles.len() < HANDLES_MOST {
            match op % 4 {
                0 => self.new_tensor(reader),
                1 => self.wrap(reader),
                kind => self.foreign(kind == 2, reader),
            }
            return;
        }
        let at = reader.below(self.handles.len());
        let full = self.handles.len() >= HANDLES_MOST;
        match op {
            4 if !full => self.retain(at),
            5 | 6 if !full => self.view(at, reader),
            7 if !full => self.copy(at, reader),
            8 => self.make_legacy(at, reader),
            9 => self.make_versioned(at, reader),
            10 => self.import(at, reader),
            11 | 12 => self.attach(at, op == 12),
            13 => self.detach(at, reader),
            14 => self.set_flags(at, reader),
            _ => self.release(at),
        }
    }

    /// Invariants after every step.
    fn check(&self) {
        assert_eq!(record(), self.expected);
        for &(tensor, place) in &self.handles {
            let (node, Versioned(tensor)) = (&self.nodes[place], tensor) else { continue };
            // SAFETY: a live tensor.
            unsafe {
                assert_eq!((*tensor).flags, node.flags);
                assert_eq!(dlrs_ref_count(tensor), if node.own { node.references } else { 0 });
                assert_eq!(dlrs_is_own(tensor), node.own.into());
                assert_eq!(call(|error| dlrs_validate_managed(tensor, 2, error)), 0);
                let strides = (*tensor).dl_tensor.strides;
                assert!(!node.own || (*tensor).dl_tensor.ndim == 0 || !strides.is_null());
            }
        }
    }
}

/// A small number for an array, so that copies stay small.
fn values(reader: &mut Reader) -> i64 {
    reader.below(8) as i64 - 2
}

/// Whether a copy has few elements and no handles.
fn copyable(tensor: *mut Managed) -> bool {
    let mut numel = 0;
    // SAFETY: a live tensor.
    let status =
        call(|error| unsafe { dlrs_numel(&raw const (*tensor).dl_tensor, &mut numel, error) });
    status == 0 && numel <= COPY_MOST
}

/// Whether a view uses no byte before or behind those of its base.
///
/// # Safety
/// Both are live.
unsafe fn inside(base: *mut Managed, view: *mut Managed) -> bool {
    let used = |tensor: *mut Managed| {
        let mut read = Snapshot::new();
        // SAFETY: the caller's promise.
        unsafe {
            let (inner, flags) = (&(*tensor).dl_tensor, (*tensor).flags);
            let first = inner.data as i128 + i128::from(inner.byte_offset);
            read.read(inner, flags, Rules::of(Level::DLRS_LEVEL_LAYOUT)).unwrap();
            let (low, high) = read.byte_extent;
            (first + i128::from(low), first + i128::from(high))
        }
    };
    let (base, view) = (used(base), used(view));
    view.0 == view.1 || base.0 <= view.0 && view.1 <= base.1
}

/// Builds the case of an input, and checks it.
pub fn run(input: &[u8]) {
    let mut reader = Reader::new(input);
    let mut machine = Machine::default();
    forget();
    for _ in 0..64 {
        if reader.done() {
            break;
        }
        machine.step(&mut reader);
        machine.check();
    }
    while !machine.handles.is_empty() {
        machine.release(0);
        machine.check();
    }
    assert!(machine.nodes.iter().all(|node| node.references == 0));
}
