//! Input bytes as choices.

use dlpack_rs::abi::{DLDataType, DLDevice};
use dlpack_rs::{device_type, dtype};

/// Numbers at which arithmetic overflows.
pub const EXTREMES: [i64; 12] = [
    i64::MAX,
    i64::MIN,
    i64::MAX - 1,
    i64::MIN + 1,
    1 << 62,
    -(1 << 62),
    1 << 61,
    1 << 32,
    (1 << 32) - 1,
    1 << 31,
    -(1 << 31),
    1 << 28,
];

/// The input, read from the front. After its end, zeros follow: so 0 means the usual.
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// From the first byte on.
    pub fn new(input: &'a [u8]) -> Self {
        Reader(input)
    }

    /// Whether only zeros follow.
    pub fn done(&self) -> bool {
        self.0.is_empty()
    }

    /// At most `n` bytes.
    pub fn bytes(&mut self, n: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(n.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// The next bytes.
    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        let (mut array, taken) = ([0; N], self.bytes(N));
        array[..taken.len()].copy_from_slice(taken);
        array
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    /// A number below `n`, from one byte.
    pub fn below(&mut self, n: usize) -> usize {
        usize::from(self.byte()) % n
    }

    /// One of `from`, by one byte.
    pub fn of<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// True for one byte in `n`, and not for 0.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == n - 1
    }

    /// Mostly from `low` to `high`, sometimes an extreme number or any.
    pub fn number(&mut self, low: i64, high: i64) -> i64 {
        match self.byte() {
            byte @ 0..240 => low + i64::from(byte) % (high - low + 1),
            240..252 => self.of(&EXTREMES),
            _ => i64::from_le_bytes(self.array()),
        }
    }

    /// A dtype of DLPack 1.3.
    pub fn legal_dtype(&mut self) -> DLDataType {
        let code = self.below(dtype::KINDS.len());
        let bits = self.of(dtype::KINDS[code].bits);
        let lanes = [1, 1, 1, 1, 1, 2, 3, 4][self.below(8)];
        DLDataType { code: code as u8, bits, lanes }
    }

    /// Mostly a dtype of DLPack 1.3, sometimes any four bytes.
    pub fn dtype(&mut self) -> DLDataType {
        match self.one_in(8) {
            false => self.legal_dtype(),
            true => {
                let [code, bits, low, high] = self.array();
                DLDataType { code, bits, lanes: u16::from_le_bytes([low, high]) }
            }
        }
    }

    /// Mostly the CPU, sometimes another device of DLPack 1.3, sometimes any eight bytes.
    pub fn device(&mut self) -> DLDevice {
        let (device_type, device_id) = match self.below(8) {
            0..5 => (1, 0),
            5 | 6 => (self.of(&device_type::KINDS.each_ref()).code, self.below(3) as i32),
            _ => (i32::from_le_bytes(self.array()), i32::from_le_bytes(self.array())),
        };
        DLDevice { device_type, device_id }
    }
}
