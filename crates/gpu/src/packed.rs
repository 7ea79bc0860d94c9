//! Texts that `packed/pack.rs` compresses when the library is built, decompressed for a driver:
//! uncompressed, the kernels would be a fifth of the library.

mod format;

use core::ffi::c_char;
use core::ptr::NonNull;

use crate::error::{Error, Result, Status::*};
use crate::platform;
use format::{EARLIER, LEAST};

/// Decompresses into `out`, which has the length of the text.
pub fn unpack(packed: &[u8], out: &mut [u8]) {
    let (mut packed, mut at) = (packed.iter().copied(), 0usize);
    while let Some(head) = packed.next() {
        let from = match head {
            EARLIER.. => {
                let [low, high] = [packed.next(), packed.next()].map(|byte| byte.unwrap_or(0));
                Some(at.wrapping_sub(usize::from(u16::from_le_bytes([low, high]))))
            }
            _ => None,
        };
        let len = usize::from(head & !EARLIER) + from.map_or(1, |_| LEAST);
        for i in 0..len {
            let byte = match from {
                Some(from) => out.get(from.wrapping_add(i)).copied(),
                None => packed.next(),
            };
            if let (Some(to), Some(byte)) = (out.get_mut(at), byte) {
                *to = byte;
            }
            at += 1;
        }
    }
}

/// A compressed text that ends with NUL.
pub struct Packed {
    /// The compressed bytes.
    pub bytes: &'static [u8],
    /// Bytes of the text, NUL included.
    pub nbytes: usize,
}

/// A decompressed text, or a compiler's output, freed when dropped.
pub struct Text {
    memory: NonNull<u8>,
    nbytes: usize,
}

impl Packed {
    /// The decompressed text.
    pub fn text(&self) -> Result<Text> {
        let mut text = Text::new(self.nbytes)?;
        unpack(self.bytes, text.bytes());
        Ok(text)
    }
}

impl Text {
    /// Zeros.
    pub fn new(nbytes: usize) -> Result<Text> {
        let error = Error::new(DLRS_NOMEM).value(nbytes as i64);
        let memory = platform::memory(nbytes).ok_or(error)?;
        // SAFETY: fresh memory of that size.
        unsafe { memory.write_bytes(0, nbytes) };
        Ok(Text { memory, nbytes })
    }

    /// Its address.
    pub fn as_ptr(&self) -> *const c_char {
        self.memory.as_ptr().cast()
    }

    /// Its bytes, NUL included.
    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: initialised memory of that size, which this text owns.
        unsafe { core::slice::from_raw_parts_mut(self.memory.as_ptr(), self.nbytes) }
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        // SAFETY: it came from `platform::memory` and its owner is dropped.
        unsafe { platform::give_back(self.memory) }
    }
}
