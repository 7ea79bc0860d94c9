#!/usr/bin/env python3
"""Compares the driver declarations of crates/gpu/src with the vendors' headers.

    declarations.py cuda|hip INCLUDE

Functions with their arguments, structs with their members, constants by the names in their comments,
and codes: each becomes an assertion of one C++ file, which $CXX (g++) compiles against the header in
INCLUDE; sizes and kinds must be equal. Prints what older headers lack: the library looks up a
function when it needs it. Closes with "N passed, N failed".
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

GPU = Path(__file__).resolve().parents[2] / "crates/gpu/src"
HEADERS = {"cuda": ["cuda.h"], "hip": ["hip/hip_runtime_api.h", "hip/hiprtc.h"]}
# NVIDIA's with the names that older programs are linked to.
DEFINES = {"cuda": "-D__CUDA_API_VERSION_INTERNAL", "hip": "-D__HIP_PLATFORM_AMD__"}
# In the order of their members; the first is the name in crates/gpu/src.
STRUCTS = {
    "cuda": {
        "Copy2d": ("CUDA_MEMCPY2D", "srcXInBytes srcY srcMemoryType srcHost srcDevice srcArray srcPitch "
                   "dstXInBytes dstY dstMemoryType dstHost dstDevice dstArray dstPitch WidthInBytes Height"),
        "Copy3dPeer": ("CUDA_MEMCPY3D_PEER",
                       "srcXInBytes srcY srcZ srcLOD srcMemoryType srcHost srcDevice srcArray srcContext "
                       "srcPitch srcHeight dstXInBytes dstY dstZ dstLOD dstMemoryType dstHost dstDevice "
                       "dstArray dstContext dstPitch dstHeight WidthInBytes Height Depth"),
        "Location": ("CUmemLocation", "type id"),
        "CopyAttributes": ("CUmemcpyAttributes_st", "srcAccessOrder srcLocHint dstLocHint flags"),
    },
    "hip": {"Attributes": ("hipPointerAttribute_t",
                           "type device devicePointer hostPointer isManaged allocationFlags")},
}
# Missing from older headers. AMD's run-time compiler has a separate header.
LATE = {"cuStreamGetDevice", "cuStreamGetGreenCtx", "cuMemcpyBatchAsync", "CU_MEMCPY_SRC_ACCESS_ORDER_STREAM",
        "CUmemcpyAttributes_st", "CUDA_ERROR_CDP_NOT_SUPPORTED", "CUDA_ERROR_CDP_VERSION_MISMATCH",
        "hipStreamGetDevice", "hipMemoryTypeManaged", "hipGetDevicePropertiesR0600"}
# The codes that codes.rs distinguishes. One without an AMD name has NVIDIA's name only.
CODES = """
1 CUDA_ERROR_INVALID_VALUE hipErrorInvalidValue
2 CUDA_ERROR_OUT_OF_MEMORY hipErrorOutOfMemory
3 CUDA_ERROR_NOT_INITIALIZED hipErrorNotInitialized
4 CUDA_ERROR_DEINITIALIZED hipErrorDeinitialized
34 CUDA_ERROR_STUB_LIBRARY
35 - hipErrorInsufficientDriver
46 CUDA_ERROR_DEVICE_UNAVAILABLE
100 CUDA_ERROR_NO_DEVICE hipErrorNoDevice
101 CUDA_ERROR_INVALID_DEVICE hipErrorInvalidDevice
102 CUDA_ERROR_DEVICE_NOT_LICENSED
200 CUDA_ERROR_INVALID_IMAGE hipErrorInvalidImage
201 CUDA_ERROR_INVALID_CONTEXT hipErrorInvalidContext
209 CUDA_ERROR_NO_BINARY_FOR_GPU hipErrorNoBinaryForGpu
214 CUDA_ERROR_ECC_UNCORRECTABLE hipErrorECCNotCorrectable
217 CUDA_ERROR_PEER_ACCESS_UNSUPPORTED hipErrorPeerAccessUnsupported
218 CUDA_ERROR_INVALID_PTX hipErrorInvalidKernelFile
220 CUDA_ERROR_NVLINK_UNCORRECTABLE
221 CUDA_ERROR_JIT_COMPILER_NOT_FOUND
222 CUDA_ERROR_UNSUPPORTED_PTX_VERSION
223 CUDA_ERROR_JIT_COMPILATION_DISABLED
224 CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY
300 CUDA_ERROR_INVALID_SOURCE hipErrorInvalidSource
301 CUDA_ERROR_FILE_NOT_FOUND hipErrorFileNotFound
302 CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND hipErrorSharedObjectSymbolNotFound
303 CUDA_ERROR_SHARED_OBJECT_INIT_FAILED hipErrorSharedObjectInitFailed
304 CUDA_ERROR_OPERATING_SYSTEM hipErrorOperatingSystem
400 CUDA_ERROR_INVALID_HANDLE hipErrorInvalidHandle
500 CUDA_ERROR_NOT_FOUND hipErrorNotFound
700 CUDA_ERROR_ILLEGAL_ADDRESS hipErrorIllegalAddress
701 CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES hipErrorLaunchOutOfResources
702 CUDA_ERROR_LAUNCH_TIMEOUT hipErrorLaunchTimeOut
703 CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING
704 CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED hipErrorPeerAccessAlreadyEnabled
705 CUDA_ERROR_PEER_ACCESS_NOT_ENABLED hipErrorPeerAccessNotEnabled
709 CUDA_ERROR_CONTEXT_IS_DESTROYED hipErrorContextIsDestroyed
710 CUDA_ERROR_ASSERT hipErrorAssert
711 CUDA_ERROR_TOO_MANY_PEERS
712 CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED hipErrorHostMemoryAlreadyRegistered
713 CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED hipErrorHostMemoryNotRegistered
714 CUDA_ERROR_HARDWARE_STACK_ERROR
715 CUDA_ERROR_ILLEGAL_INSTRUCTION
716 CUDA_ERROR_MISALIGNED_ADDRESS
717 CUDA_ERROR_INVALID_ADDRESS_SPACE
718 CUDA_ERROR_INVALID_PC
719 CUDA_ERROR_LAUNCH_FAILED hipErrorLaunchFailure
720 CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE hipErrorCooperativeLaunchTooLarge
800 CUDA_ERROR_NOT_PERMITTED
801 CUDA_ERROR_NOT_SUPPORTED hipErrorNotSupported
802 CUDA_ERROR_SYSTEM_NOT_READY
803 CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
804 CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE
805 CUDA_ERROR_MPS_CONNECTION_FAILED
806 CUDA_ERROR_MPS_RPC_FAILURE
807 CUDA_ERROR_MPS_SERVER_NOT_READY
808 CUDA_ERROR_MPS_MAX_CLIENTS_REACHED
809 CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED
810 CUDA_ERROR_MPS_CLIENT_TERMINATED
811 CUDA_ERROR_CDP_NOT_SUPPORTED
812 CUDA_ERROR_CDP_VERSION_MISMATCH
900 CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED hipErrorStreamCaptureUnsupported
901 CUDA_ERROR_STREAM_CAPTURE_INVALIDATED hipErrorStreamCaptureInvalidated
902 CUDA_ERROR_STREAM_CAPTURE_MERGE hipErrorStreamCaptureMerge
903 CUDA_ERROR_STREAM_CAPTURE_UNMATCHED hipErrorStreamCaptureUnmatched
904 CUDA_ERROR_STREAM_CAPTURE_UNJOINED hipErrorStreamCaptureUnjoined
905 CUDA_ERROR_STREAM_CAPTURE_ISOLATION hipErrorStreamCaptureIsolation
906 CUDA_ERROR_STREAM_CAPTURE_IMPLICIT hipErrorStreamCaptureImplicit
907 CUDA_ERROR_CAPTURED_EVENT hipErrorCapturedEvent
"""
TYPES = {"i32": "int32_t", "u32": "uint32_t", "usize": "size_t", "u64": "uint64_t", "u8": "char",
         "c_char": "char", "c_void": "void", "Ptr": "void *", "Handle": "void *"}
PRELUDE = """
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <type_traits>
template <class T> constexpr bool plain = std::is_integral_v<T> || std::is_enum_v<T>;
// Whether what Rust passes as R is what C takes as C: of one size; numbers signed alike, an address
// for an address, which NVIDIA keeps in a number, and places for alike things.
template <class R, class C> constexpr bool fits() {
  if constexpr (std::is_void_v<R> || std::is_void_v<C>) return true;
  else if constexpr (std::is_pointer_v<R>) {
    if constexpr (std::is_pointer_v<C>)
      return fits<std::remove_cv_t<std::remove_pointer_t<R>>, std::remove_cv_t<std::remove_pointer_t<C>>>();
    else return std::is_integral_v<C> && sizeof(C) == sizeof(R) && std::is_void_v<std::remove_cv_t<std::remove_pointer_t<R>>>;
  } else if constexpr (std::is_class_v<R>) return std::is_class_v<C> && sizeof(C) <= sizeof(R);
  else if constexpr (std::is_enum_v<C>) return sizeof(C) == sizeof(R);
  else return plain<C> && sizeof(C) == sizeof(R) && std::is_signed_v<C> == std::is_signed_v<R>;
}
struct Properties { char bytes[4096]; }; // of any version
template <class R, class C> struct call;
template <class... R, class Answer, class... C> struct call<int32_t(R...), Answer(C...)> {
  static constexpr bool alike() {
    if constexpr (sizeof...(R) == sizeof...(C)) return plain<Answer> && sizeof(Answer) == 4 && (fits<R, C>() && ...);
    else return false;
  }
};
"""


def c_type(rust):
    """The C++ equivalent of an argument's or a member's Rust type."""
    rust = rust.strip()
    pointer = re.match(r"\*(?:const|mut) (.*)", rust)
    if pointer:
        return c_type(pointer[1]) + " *"
    array = re.match(r"\[(\w+); (\d+)\]", rust)
    if array:
        return f"Array<{TYPES[array[1]]}, {array[2]}>"
    return TYPES.get(rust) or rust.split("::")[-1]


def functions(vendor):
    """Name and arguments of each function that is looked up."""
    text = (GPU / "driver.rs").read_text()
    text = text[text.index("\nfunctions! {"):]
    entry = r'(\w+)\(([^)]*)\)\s*=\s*"(\w*)",\s*"(\w*)";'
    for _, arguments, *names in re.findall(entry, text[: text.index("\n}\n")]):
        if name := names[vendor == "hip"]:
            yield name, [c_type(each.split(":", 1)[1]) for each in arguments.split(",") if each.strip()]
    if vendor == "hip":
        calls = re.findall(r'call!\(\s*library,\s*c"(\w+)",(.*?)\)[?;]', (GPU / "hiprtc.rs").read_text(), re.S)
        for name, arguments in calls:
            yield name, [c_type(each) for each in re.findall(r"=>\s*([^,]+?)\s*(?:,|$)", arguments)]


def structs(vendor):
    """Rust's structs in C++, and each member's offset in both."""
    source = (GPU / "structs.rs").read_text()
    for name, (theirs, members) in STRUCTS[vendor].items():
        body = re.search(rf"struct {name} \{{(.*?)\n\}}", source, re.S)[1]
        fields = re.findall(r"^\s*(?:pub(?:\(super\))? )?(\w+): ([^\n]+),$", body, re.M)
        yield f"template <class T, size_t N> using Array = T[N];\nstruct {name} {{"
        for field, kind in fields:
            yield f"  {c_type(kind)} {field};"
        yield "};"
        for (field, _), member in zip(fields, members.split()):
            yield (f"{theirs}, {member}", f"offsetof({name}, {field}) == offsetof({theirs}, {member}) && "
                   f"sizeof({name}::{field}) == sizeof({theirs}::{member})")


def constants():
    """Those with the vendors' names for them in a comment."""
    for path in sorted(GPU.glob("*.rs")):
        for value, names in re.findall(r"const \w+: [iu]32 = (\d+); // ([\w, ]+)$", path.read_text(), re.M):
            for name in names.split(", "):
                if re.match(r"(CU|hip|HIPRTC)\w*_?\w+$", name):
                    yield name, value


def main():
    vendor, include = sys.argv[1], Path(sys.argv[2])
    headers = [name for name in HEADERS[vendor] if (include / name).exists()]
    if not headers:
        sys.exit(f"{include} has no {HEADERS[vendor][0]}")
    text = "".join(path.read_text(errors="replace") for name in headers
                   for path in sorted((include / name).parent.glob("*.h")))
    known = set(re.findall(r"\w+", re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)))
    version = re.search(r"#define CUDA_VERSION (\d+)", text) if vendor == "cuda" else None
    major = re.search(r"#define HIP_VERSION_MAJOR (\d+)", text)
    lines, checks = [], []
    for line in structs(vendor):
        if isinstance(line, str):
            lines.append(line)
        else:
            checks.append(line)
    if major and int(major[1]) < 6:  # the vendor's name of `type`
        checks = [(what, how.replace(" type)", " memoryType)").replace("::type)", "::memoryType)"))
                  for what, how in checks]
    for name, arguments in functions(vendor):
        ours = f"int32_t({', '.join(arguments)})"
        checks.append((name, f"call<{ours}, decltype(::{name})>::alike()"))
    named = [*constants()]
    told = (GPU / "codes.rs").read_text()
    told = re.findall(r"\b(\d+)(?:\.\.=(\d+))?(?= |,)", told[told.index("match code {"):told.index("Error::new(status)")])
    told = {code for first, last in told for code in range(int(first), int(last or first) + 1)}
    if other := told ^ {int(line.split()[0]) for line in CODES.strip().split("\n")}:
        sys.exit(f"codes of codes.rs or of this table only: {other}")
    for line in CODES.strip().split("\n"):
        code, *names = line.split()
        named += [(name, code) for name in names]
    if vendor == "hip":
        kinds = re.search(r"\[(\d), (\d), (\d)\] \} else \{ \[(\d), (\d), (\d)\]", (GPU / "rocm.rs").read_text())
        of = kinds.groups()[:3] if int(major[1]) < 6 else kinds.groups()[3:]
        named += zip(("hipMemoryTypeHost", "hipMemoryTypeDevice", "hipMemoryTypeManaged"), of)
    mine = "CU" if vendor == "cuda" else "hip"
    checks += [(name, f"{name} == {value}") for name, value in named if name.upper().startswith(mine.upper())]
    absent = sorted({name for what, _ in checks if (name := what.split(",")[0]) not in known})
    checks = [(what, how) for what, how in checks if what.split(",")[0] not in absent]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "declarations.cpp"
        # As a C compiler sees them: C++ adds overloads.
        written = [PRELUDE, "#undef __cplusplus", *(f'#include "{name}"' for name in headers), *lines]
        written += [f'static_assert({how}, "differs: {what}");' for what, how in checks]
        source.write_text("\n".join(written) + "\n")
        compiler = [os.environ.get("CXX", "g++"), "-std=c++17", "-fsyntax-only", "-w", DEFINES[vendor],
                    f"-I{include}", str(source)]
        done = subprocess.run(compiler, capture_output=True, text=True, check=False)
    failed = {f"{name} differs" for name in re.findall(r'differs: ([^"\n]+)', done.stderr)}
    if done.returncode != 0 and not failed:
        failed = {done.stderr[:2000]}
    passed = len(checks) - len(failed)
    rtc = len(headers) == len(HEADERS[vendor])
    failed |= {f"{name} is in none of these headers" for name in absent
               if name not in LATE and (rtc or not name.lower().startswith("hiprtc"))}
    print(*sorted(failed), sep="\n", end="\n" if failed else "")
    label = version[1] if version else major[1]
    print(f"{vendor} {label}: without {', '.join(absent) or 'nothing'}")
    print(f"{passed} passed, {len(failed)} failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
