//! Link arguments of the shipped shared library: its SONAME, and that it never unloads.

fn main() {
    println!("cargo:rerun-if-changed=../build.rs");
    let var = |name: &str| std::env::var(name).unwrap_or_default();
    if var("CARGO_CFG_TARGET_OS") != "linux" {
        return;
    }
    let major = var("CARGO_PKG_VERSION_MAJOR");
    for argument in [
        // The ABI's major version is the library's.
        format!("-Wl,-soname,libdlpack_rs.so.{major}"),
        // A deleter that we handed out must outlive dlclose.
        "-Wl,-z,nodelete".into(),
        "-Wl,-z,relro,-z,now".into(),
        // A C++ exception out of a caller's deleter ends in std::terminate here, not in frames
        // that were never compiled to be unwound.
        "-Wl,--no-eh-frame-hdr".into(),
    ] {
        println!("cargo:rustc-cdylib-link-arg={argument}");
    }
}
