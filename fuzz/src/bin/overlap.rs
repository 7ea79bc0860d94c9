#![no_main]
libfuzzer_sys::fuzz_target!(|input: &[u8]| dlpack_rs_fuzz::targets::overlap::run(input));
