"""Conan 2: `conan create packaging/conan --version VERSION`, with conandata.yml beside it."""

from os.path import join

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, get, rmdir

required_conan_version = ">=2.0"


class DlpackRs(ConanFile):
    name = "dlpack_rs"
    description = "DLPack as a library: make, wrap, convert, share, check and copy tensors from C"
    license = "Apache-2.0"
    homepage = "https://github.com/libdlpack-rs/libdlpack_rs"
    topics = ("dlpack", "tensor", "ndarray", "zero-copy")
    package_type = "shared-library"  # includes the static one: dlpack_rs::dlpack_rs_static
    settings = "os", "arch", "compiler", "build_type"

    def configure(self):
        self.settings.rm_safe("compiler.cppstd")  # a C interface; the C++ headers are headers
        self.settings.rm_safe("compiler.libcxx")

    def layout(self):
        cmake_layout(self, src_folder="src")

    def validate(self):
        if self.settings.os not in ("Linux", "Windows"):
            raise ConanInvalidConfiguration("libdlpack_rs is packaged for Linux and Windows")

    def source(self):
        get(self, **self.conan_data["sources"][self.version], strip_root=True)

    def generate(self):
        toolchain = CMakeToolchain(self)
        # The crates are in vendor/. Needs cargo in PATH.
        toolchain.cache_variables["DLPACK_RS_CARGO_FLAGS"] = "--offline"
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        for file in ("LICENSE", "NOTICE"):
            copy(self, file, self.source_folder, join(self.package_folder, "licenses"))
        rmdir(self, join(self.package_folder, "share"))

    def package_info(self):
        # The targets of the package's CMake file, not generated ones.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = [join("lib", "cmake", "dlpack_rs"), join("lib", "cmake", "dlpack")]
        self.cpp_info.set_property("pkg_config_name", "dlpack_rs")
        self.cpp_info.libs = ["dlpack_rs"]
