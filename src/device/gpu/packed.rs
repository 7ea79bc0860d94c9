//! Texts that are packed when the library is compiled, and unpacked when a driver wants them: the
//! kernels would else be a tenth of the library.
//!
//! A packed text is a row of pieces. A byte below 128 says that as many bytes and one more follow
//! as they are; any other, less 128, how many bytes above [`LEAST`] stand earlier too, and the two
//! bytes behind it how far back, low byte first.

use core::ffi::c_char;
use core::ptr::NonNull;

use crate::error::{Error, Result, Status::*};
use crate::platform;

/// The shortest piece that is looked for.
const LEAST: usize = 6;
/// The longest of both kinds of pieces.
const RUN_MOST: usize = 128;
const MOST: usize = LEAST + 127;
const EARLIER: u8 = 128;
/// Places that are remembered, by what stands there, the last ones of each.
const PLACES_LOG: u32 = 12;
const LAST: usize = 8;

/// Places by what stands there; 0 for none, else one more.
type Places = [[u32; LAST]; 1 << PLACES_LOG];

/// Packs a text into room for `N` bytes, and says how many it takes.
pub const fn pack<const N: usize>(text: &[u8]) -> ([u8; N], usize) {
    let (mut out, mut n) = ([0; N], 0);
    let mut places: Places = [[0; LAST]; 1 << PLACES_LOG];
    let (mut at, mut run) = (0, 0);
    while at < text.len() {
        let (len, back) = longest(remember(&mut places, text, at), text, at);
        if len < LEAST {
            n += (run == 0) as usize;
            set(&mut out, n, text[at]);
            run += 1;
            n += 1;
            at += 1;
            set(&mut out, n - run - 1, (run - 1) as u8);
            run %= RUN_MOST;
            continue;
        }
        set(&mut out, n, EARLIER | (len - LEAST) as u8);
        set(&mut out, n + 1, back as u8);
        set(&mut out, n + 2, (back >> 8) as u8);
        (n, run) = (n + 3, 0);
        let end = at + len;
        at += 1;
        while at < end {
            remember(&mut places, text, at);
            at += 1;
        }
    }
    (out, n)
}

const fn set(out: &mut [u8], at: usize, byte: u8) {
    if at < out.len() {
        out[at] = byte;
    }
}

/// Where what stands here may have stood before, and remembers that it stands here.
const fn remember(places: &mut Places, text: &[u8], at: usize) -> [u32; LAST] {
    if at + LEAST > text.len() {
        return [0; LAST];
    }
    let (mut hash, mut i) = (0u64, 0);
    while i < LEAST {
        hash = hash << 8 | text[at + i] as u64;
        i += 1;
    }
    let slot = (hash.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - PLACES_LOG)) as usize;
    let before = places[slot];
    places[slot] = [at as u32 + 1; LAST];
    let mut i = 1;
    while i < LAST {
        places[slot][i] = before[i - 1];
        i += 1;
    }
    before
}

/// The longest of what stood before, and how far back.
const fn longest(places: [u32; LAST], text: &[u8], at: usize) -> (usize, usize) {
    let (mut best, mut far, mut i) = (0, 0, 0);
    while i < LAST && places[i] != 0 {
        let back = at + 1 - places[i] as usize;
        let len = if back > u16::MAX as usize { 0 } else { same(text, at, back) };
        if len > best {
            (best, far) = (len, back);
        }
        i += 1;
    }
    (best, far)
}

/// How many bytes are the same so far back.
const fn same(text: &[u8], at: usize, back: usize) -> usize {
    let mut len = 0;
    while back > 0 && len < MOST && at + len < text.len() && text[at + len] == text[at + len - back]
    {
        len += 1;
    }
    len
}

/// Unpacks into `out`, which is as long as the text was.
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

/// A packed text that ends with NUL.
pub struct Packed {
    /// What [`pack`] made.
    pub bytes: &'static [u8],
    /// Bytes of the text, NUL included.
    pub nbytes: usize,
}

/// An unpacked text, as long as it lives.
pub struct Text {
    memory: NonNull<u8>,
    nbytes: usize,
}

impl Packed {
    /// The text.
    pub fn text(&self) -> Result<Text> {
        let Some(memory) = platform::memory(self.nbytes) else {
            return Err(Error::new(DLRS_NOMEM).value(self.nbytes as i64));
        };
        // SAFETY: fresh memory of that size, all of which is written before it is a slice.
        let out = unsafe {
            memory.write_bytes(0, self.nbytes);
            core::slice::from_raw_parts_mut(memory.as_ptr(), self.nbytes)
        };
        unpack(self.bytes, out);
        Ok(Text { memory, nbytes: self.nbytes })
    }
}

impl Text {
    /// Where it begins; it ends with NUL.
    pub fn as_ptr(&self) -> *const c_char {
        self.memory.as_ptr().cast()
    }

    /// All of it, NUL included.
    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: memory of that size, which is this text's own.
        unsafe { core::slice::from_raw_parts_mut(self.memory.as_ptr(), self.nbytes) }
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        // SAFETY: it came from `platform::memory` and goes with its owner.
        unsafe { platform::give_back(self.memory) }
    }
}
