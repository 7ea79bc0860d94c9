//! Size classes: which blocks are exchangeable, and how large they really are.
//!
//! Four classes per power of two, so that a block is less than 25% larger than the request (above
//! 256 bytes, the smallest). Blocks of different alignment are never exchanged: `base` must free
//! what it allocated.
#![forbid(unsafe_code)]

use super::super::alloc::{ALIGN_BYTES, ALIGN_BYTES_MAX};

const SMALLEST_LOG2: u32 = 8;
const LARGEST_LOG2: u32 = 46;
const SIZES: usize = (LARGEST_LOG2 - SMALLEST_LOG2) as usize * 4 + 1;
const ALIGNMENTS: usize = (ALIGN_BYTES_MAX.ilog2() - ALIGN_BYTES.ilog2()) as usize + 1;
/// The number of classes.
pub const CLASSES: usize = SIZES * ALIGNMENTS;

/// The properties of all blocks of a class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Class {
    /// The number of the class, below [`CLASSES`]: larger blocks have larger numbers.
    pub index: usize,
    /// Bytes of every block.
    pub nbytes: u64,
    /// Alignment of every block.
    pub align_bytes: u64,
}

impl Class {
    /// The class of a request; `None` when no block is large enough.
    pub fn of(nbytes: u64, align_bytes: u64) -> Option<Class> {
        let legal = align_bytes.is_power_of_two() && align_bytes <= ALIGN_BYTES_MAX;
        if !legal || nbytes > 1 << LARGEST_LOG2 {
            return None;
        }
        let alignment = align_bytes.max(ALIGN_BYTES as u64).ilog2() - ALIGN_BYTES.ilog2();
        let size = match nbytes {
            0..=256 => 0,
            _ => {
                let log2 = (nbytes - 1).ilog2();
                (log2 - SMALLEST_LOG2) * 4 + ((nbytes - 1) >> (log2 - 2) & 3) as u32 + 1
            }
        };
        Some(Class::at(size as usize * ALIGNMENTS + alignment as usize))
    }

    /// The class with this number.
    pub fn at(index: usize) -> Class {
        let (size, alignment) = (index / ALIGNMENTS, index % ALIGNMENTS);
        let nbytes = match size.checked_sub(1) {
            None => 1 << SMALLEST_LOG2,
            Some(step) => (step as u64 % 4 + 5) << (step / 4 + SMALLEST_LOG2 as usize - 2),
        };
        Class { index, nbytes, align_bytes: (ALIGN_BYTES as u64) << alignment }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_fit_the_request_within_a_quarter() {
        let mut before = 0;
        for log2 in 0..=46 {
            for quarter in 4..8 {
                for around in [-1, 0, 1] {
                    let nbytes = ((quarter << log2 >> 2) + around).clamp(0, 1i64 << 46) as u64;
                    let class = Class::of(nbytes, 64).unwrap();
                    assert!(class.nbytes >= nbytes && class.nbytes >= before.min(nbytes));
                    assert!(nbytes <= 256 || class.nbytes * 4 < nbytes * 5, "{nbytes}");
                    assert_eq!(Class::of(class.nbytes, 64), Some(class));
                    before = class.nbytes;
                }
            }
        }
    }

    #[test]
    fn classes_are_numbered_by_size_and_alignment() {
        let mut before = 0;
        for index in 0..CLASSES {
            let class = Class::at(index);
            assert_eq!(Class::of(class.nbytes, class.align_bytes), Some(class));
            assert!(class.nbytes >= before);
            before = class.nbytes;
        }
        assert_eq!(Class::at(CLASSES - 1).nbytes, 1 << 46);
        assert_eq!(Class::at(CLASSES - 1).align_bytes, 1 << 30);
    }

    #[test]
    fn oversized_requests_have_no_class() {
        for (nbytes, align_bytes) in
            [((1 << 46) + 1, 256), (u64::MAX, 1), (8, 0), (8, 3), (8, 1 << 31), (8, u64::MAX)]
        {
            assert_eq!(Class::of(nbytes, align_bytes), None);
        }
    }
}
