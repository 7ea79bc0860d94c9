//! Link arguments of the shipped shared library: its name, that it never unloads, and nothing that
//! it does not need.

fn main() {
    println!("cargo:rerun-if-changed=../../build.rs");
    let var = |name: &str| std::env::var(name).unwrap_or_default();
    // The version of the interface: before 1.0 the minor one counts as the major one does later.
    let version = match (var("CARGO_PKG_VERSION_MAJOR"), var("CARGO_PKG_VERSION_MINOR")) {
        (major, minor) if major == "0" => format!("0.{minor}"),
        (major, _) => major,
    };
    let soname = format!("-Wl,-soname,libdlpack_rs.so.{version}");
    let install_name = format!("-Wl,-install_name,@rpath/libdlpack_rs.{version}.dylib");
    // The crate libc names libiconv, of which nothing is used.
    let macos = [&*install_name, "-Wl,-dead_strip_dylibs"];
    let no_frames = format!("-Wl,-T,{}/no_frames.ld", var("CARGO_MANIFEST_DIR"));
    println!("cargo:rerun-if-changed=no_frames.ld");
    let linux = [
        &*soname,
        // A deleter that we handed out must outlive dlclose.
        "-Wl,-z,nodelete",
        "-Wl,-z,relro,-z,now",
        // A C++ exception out of a caller's deleter ends in std::terminate here, not in frames
        // that were never compiled to be unwound.
        "-Wl,--no-eh-frame-hdr",
        &*no_frames,
    ];
    // No start-up code, so no thread-local storage and no imports of its own. `platform::windows`
    // does what nodelete does.
    let windows = ["-nostartfiles", "-Wl,--entry=0"];
    // Without std nobody else names the C run-time.
    let msvc = ["/NOENTRY", "/DEFAULTLIB:vcruntime", "/DEFAULTLIB:ucrt"];
    let arguments: &[&str] = match (&*var("CARGO_CFG_TARGET_OS"), &*var("CARGO_CFG_TARGET_ENV")) {
        // A debugger reads the tables without their index: a build for one keeps them.
        ("linux", _) if var("DEBUG") == "true" => &linux[..linux.len() - 1],
        ("linux", _) => &linux,
        ("macos", _) => &macos,
        ("windows", "gnu") => &windows,
        ("windows", "msvc") => &msvc,
        _ => &[],
    };
    for argument in arguments {
        println!("cargo:rustc-cdylib-link-arg={argument}");
    }
}
