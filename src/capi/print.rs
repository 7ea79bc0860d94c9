//! Tensors as text.

use core::ffi::c_char;
use core::mem::MaybeUninit;

use super::arg::{self, Live, Text, live, optional, variable, write_text};
use super::error::{dlrs_error, dlrs_status, run};
use crate::abi::*;
use crate::error::{Arg, Error, Result, Status::*};
use crate::print::{self, Description, Elements, PrintOptions};
use crate::reader::Reader;
use crate::validate::{Level, Rules, Snapshot};

/// How much to print. A member that is 0 means its default.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(non_camel_case_types)]
pub struct dlrs_print_options {
    /// `sizeof(dlrs_print_options)`.
    pub struct_size: u32,
    /// Elements printed at each edge of a dimension of a large tensor; 0 for 3.
    pub edge_items: u32,
    /// A tensor with more elements than this is large; 0 for 1000.
    pub threshold: u64,
}

// SAFETY: plain data, u32 first.
unsafe impl arg::Sized32 for dlrs_print_options {}

fn options_of(options: Option<Live<dlrs_print_options>>, argument: Arg) -> Result<PrintOptions> {
    let (default, mut room) = (PrintOptions::DEFAULT, MaybeUninit::uninit());
    let Some(given) = arg::options(options, argument, &mut room)? else {
        return Ok(default);
    };
    let or = |given: u32, default: u32| if given == 0 { default } else { given };
    Ok(PrintOptions {
        threshold: if given.threshold == 0 { default.threshold } else { given.threshold },
        edge_items: or(given.edge_items, default.edge_items),
    })
}

/// What the two functions take but the tensor: options, and where the text goes.
type Asked = (*const dlrs_print_options, (*mut c_char, usize, *mut usize), *mut dlrs_error);

/// Reads a tensor, and writes what it is; fails only when not even its shape is known.
///
/// # Safety
/// `tensor`, the options and the error are NULL or live; the buffer is NULL or has as many writable
/// bytes as is said, which goes to a NULL or writable variable.
#[inline(never)]
unsafe fn print<T>(
    function: &'static str,
    tensor: *const T,
    (options, (buffer, capacity, nbytes), error): Asked,
    read: fn(Live<T>, u64, Rules, &mut Snapshot) -> Result<()>,
    flags: u64,
) -> dlrs_status {
    let pointers = (
        live(tensor, Arg::tensor),
        optional(live(options, Arg::options)),
        arg::buffer(buffer, capacity, Arg::buffer),
        optional(variable(nbytes, Arg::nbytes)),
    );
    // SAFETY: tensor, options and error are NULL or live, buffer is NULL or has capacity writable
    // bytes, nbytes is NULL or writable.
    unsafe {
        run(function, error, pointers, |(tensor, options, buffer, nbytes)| {
            let options = options_of(options, Arg::options)?;
            let mut snapshot = Snapshot::new();
            let checked = read(tensor, flags, Rules::of(Level::DLRS_LEVEL_LAYOUT), &mut snapshot);
            // A 0-d tensor has no extents either, and can be described when only its address is
            // wrong.
            if let Err(error) = checked
                && snapshot.shape().is_empty()
                && !matches!(error.status(), DLRS_DATA_NULL | DLRS_OFFSET | DLRS_EXTENT_OVERFLOW)
            {
                return Err(error.of(Arg::tensor));
            }
            write_text(buffer, nbytes, &mut |text| {
                // Its layout was checked without error, and its memory is live during the call.
                let reader = checked.ok().and_then(|()| Reader::new(&snapshot).ok());
                write(&snapshot, checked, reader.as_ref(), &options, text)
            })
        })
    }
}

/// Writes a tensor whose reading ended with `checked`.
fn write(
    tensor: &Snapshot,
    checked: Result<()>,
    reader: Option<&Reader>,
    options: &PrintOptions,
    text: &mut Text,
) -> core::fmt::Result {
    let description = Description {
        shape: tensor.shape(),
        strides: tensor.strides_given.then(|| tensor.strides()),
        dtype: tensor.dtype,
        device: tensor.device,
        byte_offset: tensor.byte_offset,
        flags: Some(tensor.flags),
    };
    print::write_tensor(&description, reader.map(|reader| reader as &dyn Elements), options, text)?;
    checked.or_else(|error| broken(&error, text))
}

/// Says on a new line why there are no values.
fn broken(error: &Error, text: &mut Text) -> core::fmt::Result {
    use core::fmt::Write;
    text.write_str("\n<")?;
    text.write_str(error.status().explain().1)?;
    text.write_str(">")
}

/// Describe a bare tensor, and print its values as nested lists.
///
/// One line describes it; then each row is a line. Integers are decimal, truth values True and
/// False, floats the shortest decimal numbers that are read back as the same float64 or float32;
/// narrower floats are written like the float32 of the same value. Complex numbers are 1.0-2.0j;
/// handles and elements of unknown dtypes are hexadecimal; "..." stands for what is left out.
///
/// Shape:     any; large tensors are summarised. Invalid extents and strides are printed, with a
///            line that describes the error instead of values.
/// Bytes:     as dlrs_dtype_format.
/// Device:    values are printed if the CPU can access them; for managed memory the call waits for
///            its device's default stream.
/// Ownership: unchanged; nothing is kept.
/// Flags:     those of its managed tensor, or 0.
/// Errors:    as dlrs_dtype_format. DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: tensor.
///            DLRS_STRUCT_SIZE: options. DLRS_NDIM, DLRS_SHAPE_NULL, DLRS_DTYPE_BITS,
///            DLRS_DTYPE_LANES: nothing to describe.
/// Threads:   any; no other thread writes the elements meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_tensor_to_string(
    tensor: *const DLTensor,
    flags: u64,
    options: *const dlrs_print_options,
    buffer: *mut c_char,
    capacity: usize,
    nbytes: *mut usize,
    error: *mut dlrs_error,
) -> dlrs_status {
    let asked = (options, (buffer, capacity, nbytes), error);
    // SAFETY: tensor, options and error are NULL or live, buffer is NULL or has capacity writable
    // bytes, nbytes is NULL or writable, by the preface.
    unsafe { print("dlrs_tensor_to_string", tensor, asked, Live::<DLTensor>::read, flags) }
}

/// Describe a versioned tensor, and print its values as nested lists.
///
/// Flags:     its own.
/// Errors:    DLRS_VERSION: the major version is not 1. All else as dlrs_tensor_to_string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_managed_to_string(
    tensor: *const DLManagedTensorVersioned,
    options: *const dlrs_print_options,
    buffer: *mut c_char,
    capacity: usize,
    nbytes: *mut usize,
    error: *mut dlrs_error,
) -> dlrs_status {
    let asked = (options, (buffer, capacity, nbytes), error);
    let read = |tensor: Live<DLManagedTensorVersioned>, _, rules, into: &mut Snapshot| {
        tensor.read(rules, into)
    };
    // SAFETY: tensor, options and error are NULL or live, buffer is NULL or has capacity writable
    // bytes, nbytes is NULL or writable, by the preface.
    unsafe { print::<DLManagedTensorVersioned>("dlrs_managed_to_string", tensor, asked, read, 0) }
}
