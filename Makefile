# What one does with this repository. `make` alone lists it. The library itself is built by cargo;
# CMakeLists.txt is for projects that use it.
PREFIX ?= /usr/local
CARGO ?= cargo
PYTHON ?= python3
export CARGO_TARGET_DIR = $(CURDIR)/target
LIB = target/lib
INCLUDE = target/include
SONAME := $(shell crates/cdylib/soname.sh)
# Named in every build of the library: a target out of cargo's configuration or CARGO_BUILD_TARGET
# would put it elsewhere, and an older one would be taken for it.
HOST = $(shell PATH='$(PATH)' $(CARGO) -vV | sed -n 's/^host: //p')

# What the goals need and this machine lacks is found out, and installed where that may be, before
# anything else: SETUP=yes, no or all (tests/setup.sh). Rust may be where rustup puts it, CMake and
# ninja where tests/setup.sh does.
export PATH := $(PATH):$(HOME)/.cargo/bin:$(CURDIR)/target/tools/bin
# Scripts import what lies beside them, and what is installed for them.
unexport PYTHONHOME PYTHONOPTIMIZE PYTHONPATH PYTHONSAFEPATH

.DEFAULT_GOAL = help
.PHONY: help setup build install install-build uninstall packages release demo check lint docs test test-clean \
	test-long soak sanitize miri coverage mutants faults trust wheel conform interop adopt-numpy adopt-nanobind \
	test-pythons test-oneapi \
	test-windows test-cross test-cuda test-rocm bench-cuda bench-rocm bench size fuzz fuzz-long clean

help:  ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 21

setup: # once, for all goals
	@CARGO='$(CARGO)' PYTHON='$(PYTHON)' SETUP='$(SETUP)' tests/setup.sh $(or $(MAKECMDGOALS),build)

# With the Python module, as the wheel has it; what CMake installs has none, and is built apart.
# FEATURES="cuda print" on the command line, which may be empty: with these of Cargo.toml alone.
MODULE = target/module
AS_ASKED = --features module
ifneq ($(filter command,$(origin FEATURES)),)
AS_ASKED = --no-default-features --features "$(FEATURES)"
export DLRS_FEATURES = $(FEATURES)
endif
build: setup  ## build the release library; leaves target/lib, target/include; FEATURES="cuda print"
	$(CARGO) build --release --locked -p dlpack_rs_cdylib $(AS_ASKED) --target $(HOST) \
	  --target-dir $(MODULE)
	@mkdir -p $(LIB) $(INCLUDE)
	@ln -sfn ../../include $(INCLUDE)/dlpack
	@for name in libdlpack_rs.so $(SONAME); do \
	  ln -sf ../../$(MODULE)/$(HOST)/release/libdlpack_rs.so $(LIB)/$$name; done
	@crates/cdylib/static.sh $(MODULE)/$(HOST)/release/libdlpack_rs.a $(LIB)/libdlpack_rs.a
	@! $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null || \
	  $(PYTHON) -B python/generate_abi.py

# With sudo, what is built is built as the one who called it: Rust is theirs, and so is target/.
AS_CALLER = $(if $(SUDO_USER),$(if $(filter $(SUDO_USER),$(shell stat -c %U .)),\
	sudo -H -u $(SUDO_USER)))
install:  ## install below PREFIX (/usr/local), or DESTDIR/PREFIX
	@$(AS_CALLER) $(MAKE) --no-print-directory install-build PREFIX="$(PREFIX)" CARGO="$(CARGO)"
	DESTDIR="$(DESTDIR)" cmake --install target/cmake-install

install-build: setup
	cmake -S . -B target/cmake-install -DCMAKE_INSTALL_PREFIX="$(PREFIX)" \
	  $(if $(filter command,$(origin FEATURES)),-DDLPACK_RS_FEATURES="$(FEATURES)",-UDLPACK_RS_FEATURES) \
	  -DDLPACK_RS_CARGO_TARGET_DIR="$(CARGO_TARGET_DIR)"
	cmake --build target/cmake-install
	@rm -f target/cmake-install/install_manifest.txt # root's, after sudo

uninstall:  ## remove what `make install` wrote last, in DESTDIR where that is set
	DESTDIR="$(DESTDIR)" cmake -DMANIFESTS="$(CURDIR)/target/cmake-install" -P packaging/cmake/uninstall.cmake

packages: setup  ## release archives, .deb and the recipes of package managers, each tried (docs/packages.md)
	packaging/run.sh $(PACKAGES)

release: setup  ## all files of a release with SBOM and SHA256SUMS, built twice: target/packages/release
	packaging/run.sh source binary others deb wheel release again

demo: setup  ## build the library, find it from a C program with CMake, and use it from Python
	examples/demo.sh

# One line a step; each ends with its counts. One alone: make test TESTS='"c_tests/consumers.sh"'
# Several run at a time: a step shares no file that it writes with another, but by locks. What takes
# longest begins first.
TESTS = \
	"cargo test --locked --no-fail-fast" \
	"c_tests/gpu/run.sh $(INCLUDE)/dlpack $(LIB)" \
	"c_tests/run.sh $(INCLUDE)/dlpack $(LIB)" \
	"tests/random.sh" \
	"c_tests/levels/run.sh $(INCLUDE)/dlpack" \
	"c_tests/features/run.sh $(INCLUDE)/dlpack" \
	"c_tests/conform/run.sh $(INCLUDE)/dlpack $(LIB)" \
	"tests/python/run.sh" \
	"conformance/tests/run.sh" \
	"python/wheel.sh && python/test_wheel.sh" \
	"crates/headers/check.sh" \
	"tests/lint.sh" \
	"c_tests/consumers.sh" \
	"tests/gpu/kernels.sh" \
	"tests/tsan.sh" \
	"tests/interop/run.py --fast" \
	"c_tests/static/run.sh $(INCLUDE)/dlpack $(LIB)" \
	"c_tests/hpp.sh $(INCLUDE)/dlpack $(LIB)" \
	"examples/run.sh $(INCLUDE) $(LIB)" \
	"examples/bindings/run.sh $(INCLUDE) $(LIB)" \
	"c_tests/laws.sh $(INCLUDE)/dlpack $(LIB)" \
	"tests/setup_test.sh" \
	"c_tests/layout/run.sh $(INCLUDE)/dlpack $(LIB)" \
	"docs/site/build.sh $(INCLUDE) $(LIB)" \
	"tests/lemmas.sh" \
	"docs/check_quotes.py"
# What needs tools for other platforms, or much from the package index: .ci/run adds them.
PLATFORM_TESTS =
# Options of tests/steps.py.
STEPS =

# What tells the most in the least time: house rules, units, pointers and errors, the file's laws.
CHECKS = \
	"cargo fmt --all --check && echo 1 passed, 0 failed" \
	"cargo test --locked --no-fail-fast $(addprefix -p dlpack_,rs core kernels) --lib \
	  $(addprefix --test ,house print names plain packed cast overlap saturation fuzz_seeds)" \
	"ONLY='catalogue sweep test_backend test_error test_copy test_pairs \
	  test_share test_validate test_view test_workers' \
	  NO_VALGRIND=1 NO_LAWS=1 c_tests/run.sh $(INCLUDE)/dlpack $(LIB)" \
	"c_tests/laws.sh $(INCLUDE)/dlpack $(LIB)" \
	"c_tests/static/run.sh $(INCLUDE)/dlpack $(LIB)" \
	"$(PYTHON) -B tests/python/quick.py" \
	"FACES=cuda FAULTS_STEP=127 NO_VALGRIND=1 c_tests/gpu/run.sh $(INCLUDE)/dlpack $(LIB)"

check: build  ## what is quickest to tell that something is wrong
	@exec tests/steps.py $(CHECKS)

lint: setup  ## rustfmt, clippy, rustdoc, shellcheck
	tests/lint.sh

test: build  ## run every test there is
	@exec tests/steps.py $(STEPS) $(PLATFORM_TESTS) $(TESTS)

# The two commands of README.md where there is next to nothing: SUITE, GOALS and SETUP.
SUITE = bookworm
test-clean:  ## make demo (GOALS="demo test") in a bare Debian; SUITE=trixie, sid, jammy, noble; as root
	tests/clean_root.sh $(SUITE) $(GOALS)

test-long:  ## copies of any layout for LONG=600 seconds, overlap in larger worlds
	DLRS_LONG=1 $(CARGO) test --locked --release --test overlap
	DLRS_SECONDS=$(or $(LONG),600) $(CARGO) test --locked --release --test engine differential

# `.ci/run` fetches 3.14 and 3.15 only: tests find what is in target/pythons/bin.
test-pythons: build  ## the Python layer on CPython 3.14, 3.15, debug builds, without the GIL
	tests/python/get_pythons.sh target/pythons debug free-threaded
	tests/python/run.sh $(LIB)/libdlpack_rs.so -k every_python

SOAK_MINUTES = 240
SOAK_SEED = 1
soak: build  ## random operations on 4 threads for hours; SOAK_MINUTES=240 SOAK_SEED=1
	c_tests/soak/run.sh $(INCLUDE)/dlpack $(LIB) $$(($(SOAK_MINUTES) * 60)) $(SOAK_SEED)

sanitize:  ## the tests with sanitizers, of the library too; SANITIZE="rust address thread"
	tests/sanitize.sh $(SANITIZE)

miri:  ## the core under Miri, by both of Rust's aliasing models, where a nightly toolchain has it
	tests/miri.sh

coverage: build  ## which lines the C and Python tests run; writes target/coverage
	tests/coverage.sh

mutants: setup  ## change the core in one place at a time: do tests notice? MUTANTS="--share 1/20"
	$(PYTHON) -B tests/mutants.py $(MUTANTS)

TRUST =
trust: build  ## run all that docs/reliability.md says and can be run here; TRUST=sanitize: some of it
	docs/reliability.py $(TRUST)

FAULTS =
faults: setup  ## plant one fault at a time: which step finds it? FAULTS="--part crates/gpu" (hours)
	$(PYTHON) -B tests/faults.py $(FAULTS)

test-oneapi: build  ## the oneAPI example, on a device that Intel's wheels make of the CPU
	examples/oneapi/run.sh $(INCLUDE) $(LIB)

wheel: setup  ## build the Python wheel into target/wheel, for glibc 2.17 and later, and test it
	python/wheel.sh
	python/test_wheel.sh

conform: build  ## the conformance kit on every system there is; writes docs/conformance.md
	$(PYTHON) -B tests/interop/conform.py

interop: build  ## exchange tensors with every system there is; writes docs/interop.md
	$(PYTHON) -B tests/interop/run.py

adopt-numpy: build  ## NumPy on this library: its own tests, answers and times (examples/adopt)
	$(PYTHON) -B examples/adopt/numpy/run.py $(INCLUDE) $(LIB)

adopt-nanobind: build  ## nanobind on this library: its own tests, answers (examples/adopt)
	$(PYTHON) -B examples/adopt/nanobind/run.py $(INCLUDE) $(LIB)

docs: build  ## build the site of docs/ into target/site, and check it
	docs/site/build.sh $(INCLUDE) $(LIB)

test-windows: setup  ## the .dll and the C and C++ tests, under wine (docs/platforms.md)
	packaging/platforms/windows.sh

test-cuda:  ## the device layer on a real NVIDIA GPU, with torch and CuPy (docs/devices.md)
	c_tests/gpu/device.py cuda test
	c_tests/gpu/device.py cuda sanitize || [ $$? -eq 3 ] # not installed

test-rocm:  ## the device layer on a real AMD GPU (docs/devices.md)
	c_tests/gpu/device.py rocm test

bench-cuda:  ## copies on a GPU next to cuMemcpyAsync, torch, CuPy, CCCL; docs/benchmarks-gpu.md
	c_tests/gpu/device.py cuda bench $(BENCH)

bench-rocm:  ## copies on a GPU next to hipMemcpyAsync, torch, CuPy; docs/benchmarks-gpu.md
	c_tests/gpu/device.py rocm bench $(BENCH)

test-cross: setup  ## other processors under qemu (docs/platforms.md)
	packaging/platforms/cross.sh

size: build  ## what the bytes of the library are (docs/size.md)
	$(PYTHON) -B tests/size.py $(LIB)/libdlpack_rs.so

bench: build  ## speed next to memcpy, NumPy, torch: docs/benchmarks.md; BENCH="--base dd98b55 --cpu"
	benches/bench.sh $(BENCH)

FUZZ_SECONDS = 240
FUZZ_HOURS = 1
fuzz: build  ## random runs, as in make test; FUZZ_SECONDS=240 SEED=1 (docs/testing.md)
	RANDOM_SECONDS=$(FUZZ_SECONDS) tests/random.sh

fuzz-long: build  ## the same for FUZZ_HOURS=1
	RANDOM_SECONDS=$$(($(FUZZ_HOURS) * 3600)) tests/random.sh

clean:  ## remove everything that was built
	rm -rf target
