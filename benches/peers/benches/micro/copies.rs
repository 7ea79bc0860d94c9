//! What is copied, by whom, and whether they do it right.

use crate::ours::{self, CPU, Dtype, Tensor};
use divan::{Bencher, counter::BytesCount};
use dlpack_rs_peers::{PEERS, View};
use std::alloc::{Layout, alloc};
use std::ptr::null_mut;
use std::sync::OnceLock;

const ROOM: usize = 128 << 20;

/// A strided view of the source, with strides in elements of `size` bytes.
pub struct Case {
    size: usize,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

/// A view with these strides.
pub fn strided(size: usize, shape: &[i64], strides: &[i64]) -> Case {
    Case { size, shape: shape.to_vec(), strides: strides.to_vec() }
}

/// The axes of a compact array of that shape in another order.
pub fn permuted(size: usize, shape: &[i64], axes: &[usize]) -> Case {
    let steps: Vec<i64> = (0..shape.len()).map(|i| shape[i + 1..].iter().product()).collect();
    let pick = |of: &[i64]| axes.iter().map(|&axis| of[axis]).collect();
    Case { size, shape: pick(shape), strides: pick(&steps) }
}

#[derive(Clone, Copy)]
pub enum Who {
    Memcpy,
    Ours,
    Peer(usize),
}

impl std::fmt::Display for Who {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(match self {
            Who::Memcpy => "memcpy",
            Who::Ours => "ours",
            Who::Peer(place) => PEERS[*place].0,
        })
    }
}

/// Addresses of bytes to read, which are ordinary numbers as f32 and f64 (HPTT multiplies them), and
/// of bytes to write: in huge pages where there are any, at lines, not at the same place of a page.
fn memory() -> (*const u8, *mut u8) {
    static MEMORY: OnceLock<[usize; 2]> = OnceLock::new();
    let [src, dst] = MEMORY.get_or_init(|| {
        [1u32, 2].map(|seed| {
            let layout = Layout::from_size_align(ROOM + 4096, 2 << 20).unwrap();
            // SAFETY: fresh memory, filled once.
            unsafe {
                let base = alloc(layout);
                assert!(!base.is_null());
                libc::madvise(base.cast(), ROOM, libc::MADV_HUGEPAGE);
                let mut x = seed;
                for word in 0..(ROOM + 4096) / 4 {
                    x ^= x << 13;
                    x ^= x >> 17;
                    x ^= x << 5;
                    base.cast::<u32>().add(word).write(0x3F80_0000 | x >> 9);
                }
                base as usize
            }
        })
    });
    (*src as *const u8, (*dst + 1088) as *mut u8)
}

impl Case {
    fn bytes(&self) -> usize {
        self.shape.iter().product::<i64>() as usize * self.size
    }

    fn view(&self) -> View<'_> {
        let mut view =
            View { data: memory().0, shape: &self.shape, strides: &self.strides, size: self.size };
        let (low, span) = view.span();
        assert!(span * self.size <= ROOM && self.bytes() <= ROOM);
        // SAFETY: the view begins as far from the memory's begin as its lowest element is below it.
        view.data = unsafe { view.data.offset(-low * self.size as isize) };
        view
    }

    /// What has to be in the output: one element after the other.
    fn expected(&self) -> Vec<u8> {
        let (view, mut index) = (self.view(), vec![0; self.shape.len()]);
        let mut bytes = Vec::with_capacity(self.bytes());
        while bytes.len() < self.bytes() {
            let at: i64 = index.iter().zip(&self.strides).map(|(i, step)| i * step).sum();
            // SAFETY: an element of the view.
            bytes.extend_from_slice(unsafe {
                let first = view.data.offset(at as isize * self.size as isize);
                std::slice::from_raw_parts(first, self.size)
            });
            for axis in (0..index.len()).rev() {
                index[axis] += 1;
                if index[axis] < self.shape[axis] {
                    break;
                }
                index[axis] = 0;
            }
        }
        bytes
    }

    /// What copies once and says whether it could; the tensors are made before.
    fn copier(&self, who: Who) -> Box<dyn Fn() -> bool + '_> {
        let (view, (src, dst), bytes) = (self.view(), memory(), self.bytes());
        match who {
            // SAFETY: both have room for that, as `view` has seen.
            Who::Memcpy => {
                Box::new(move || unsafe { !libc::memcpy(dst.cast(), src.cast(), bytes).is_null() })
            }
            // SAFETY: as above; nobody else uses the output.
            Who::Peer(place) => Box::new(move || unsafe { PEERS[place].1(&view, dst) }),
            Who::Ours => {
                let dtype = Dtype { code: 1, bits: 8, lanes: self.size as u16 };
                let of = move |data: *mut u8, strides: *const i64| Tensor {
                    data: data.cast(),
                    device: CPU,
                    ndim: self.shape.len() as i32,
                    dtype,
                    shape: self.shape.as_ptr(),
                    strides,
                    byte_offset: 0,
                };
                let steps: Vec<i64> = view.compact().iter().map(|&step| step as i64).collect();
                let from = of(view.data.cast_mut(), self.strides.as_ptr());
                let copy = ours::library().dlrs_copy_desc;
                Box::new(move || {
                    let to = of(dst, steps.as_ptr());
                    // SAFETY: tensors of both memories, whose arrays live as long as the case.
                    unsafe { copy(&from, 0, &to, 0, &ours::ONE_THREAD, null_mut()) == 0 }
                })
            }
        }
    }
}

/// Who can copy it; those who can have been seen to do it right.
pub fn able(case: &Case) -> Vec<Who> {
    let expected = case.expected();
    let right = |who: &Who| {
        let (_, dst) = memory();
        // SAFETY: the output has room for that, and nobody uses it.
        let written = unsafe {
            dst.write_bytes(0, case.bytes());
            std::slice::from_raw_parts(dst, case.bytes())
        };
        let could = case.copier(*who)();
        assert!(!could || written == expected, "{who}: another result");
        could
    };
    let peers = (0..PEERS.len()).map(Who::Peer).filter(right);
    let ours = Some(Who::Ours).filter(right);
    assert!(ours.is_some(), "our copy was refused");
    [Who::Memcpy].into_iter().chain(ours).chain(peers).collect()
}

/// Times one of those, in bytes of output per second.
pub fn time(bencher: Bencher, case: &Case, who: Who) {
    let copy = case.copier(who);
    bencher.counter(BytesCount::new(case.bytes())).bench_local(copy);
}
