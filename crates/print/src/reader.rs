//! Reading single elements of a checked tensor: for printing, not for speed.

use crate::Elements;
use crate::copy;
use crate::device_type;
use crate::dtype;
use crate::error::{Error, Field::*, Result, Status::*};
use crate::validate::Snapshot;

/// The elements of a tensor whose layout has been checked and which the host can access.
pub struct Reader<'a>(&'a Snapshot);

impl<'a> Reader<'a> {
    /// A reader, where the host can read the elements, once their device has written them.
    ///
    /// # Safety
    /// `tensor` was read at the layout level without error, and its memory is live and readable
    /// while the reader is used.
    pub unsafe fn new(tensor: &'a Snapshot) -> Result<Self> {
        if tensor.empty {
            return Ok(Reader(tensor));
        }
        let device_type = tensor.device.device_type;
        if !device_type::host_reachable(device_type) {
            let error = Error::new(DLRS_DEVICE_TYPE).field(DLRS_FIELD_DEVICE_TYPE);
            let error = error.detail(
                "the CPU cannot read these elements\0\
                                      Copy them with dlrs_to_device first.\0\
                                      Copy them by to('cpu') first.",
            );
            return Err(error.value(device_type.into()));
        }
        copy::host_read(tensor, &copy::Streams::NONE)?;
        Ok(Reader(tensor))
    }
}

impl Elements for Reader<'_> {
    fn bits(&self, index: &[i64], lane: u16) -> u128 {
        let tensor = self.0;
        let places = index.iter().zip(tensor.strides());
        // Inside the extent that was checked, so nothing wraps.
        let element = places.map(|(&at, &stride)| at.wrapping_mul(stride)).sum::<i64>();
        let width = usize::from(tensor.dtype.bits);
        let slot = i128::from(tensor.slot_bits());
        let bit = i128::from(element) * slot + i128::from(lane) * width as i128;
        let (byte, phase) = ((bit >> 3) as isize, (bit & 7) as usize);
        let mut bits = 0u128;
        // Only the bytes of the value: its neighbours may be outside the tensor.
        for place in 0..(phase + width).div_ceil(8) {
            // SAFETY: a byte of the element, inside the extent that `new`'s caller vouched for.
            let value = unsafe { tensor.first().offset(byte).add(place).read() };
            bits = match (place * 8).checked_sub(phase) {
                Some(up) => bits | u128::from(value).checked_shl(up as u32).unwrap_or(0),
                None => u128::from(value >> phase),
            };
        }
        // Elements of whole bytes are in the machine's order; packed bits are always little.
        if cfg!(target_endian = "big") && (8..=128).contains(&width) {
            bits = bits.swap_bytes() >> (128 - width);
            if dtype::is_complex(tensor.dtype.code) {
                // Each part is, but the real one comes first, on every machine: in the low bits.
                let half = width / 2;
                bits = (bits >> half | bits << half) & u128::MAX >> (128 - width);
            }
        }
        bits
    }
}
