//! Our copies next to memcpy and the crates of this package, on the same memory and one thread, and
//! what small tensors cost; by divan: `make bench-micro`, or `cargo bench -- NAME` here after `make
//! build`, with divan's options (`--max-time 2`). Every result is compared with that of a loop over
//! elements before it is timed. Competitors run one after the other: for ratios in pairs, see
//! `make bench` and `make bench-engine`.

mod copies;
mod ours;
mod small;

use copies::{Who, able, permuted, strided, time};
use divan::Bencher;
use std::time::Duration;

fn main() {
    divan::Divan::default().max_time(Duration::from_millis(400)).config_with_args().main();
}

macro_rules! copies {
    ($($name:ident: $case:expr;)*) => {$(
        #[divan::bench(args = able(&$case))]
        fn $name(bencher: Bencher, who: Who) {
            time(bencher, &$case, who);
        }
    )*};
}

mod copy {
    use super::*;

    copies! {
        dense_f32_16_kib: strided(4, &[1 << 12], &[1]);
        dense_f32_64_mib: strided(4, &[1 << 24], &[1]);
        transpose_f32_64: permuted(4, &[64, 64], &[1, 0]);
        transpose_f32_1024: permuted(4, &[1024, 1024], &[1, 0]);
        transpose_f32_4096: permuted(4, &[4096, 4096], &[1, 0]);
        transpose_f32_4095x4097: permuted(4, &[4095, 4097], &[1, 0]);
        transpose_f64_64: permuted(8, &[64, 64], &[1, 0]);
        transpose_f64_2048: permuted(8, &[2048, 2048], &[1, 0]);
        transpose_u8_128: permuted(1, &[128, 128], &[1, 0]);
        transpose_u8_4096: permuted(1, &[4096, 4096], &[1, 0]);
        nchw_to_nhwc_f32_16x64x56x56: permuted(4, &[16, 64, 56, 56], &[0, 2, 3, 1]);
        reversal_f32_32x24x16x24x32: permuted(4, &[32, 24, 16, 24, 32], &[4, 3, 2, 1, 0]);
        inner_step_2_f32_1024x512: strided(4, &[1024, 512], &[1024, 2]);
        inner_step_2_f32_4096x2048: strided(4, &[4096, 2048], &[4096, 2]);
        reversed_inner_axis_f32_1024x512: strided(4, &[1024, 512], &[512, -1]);
        reversed_inner_axis_f32_4096x4096: strided(4, &[4096, 4096], &[4096, -1]);
    }
}
