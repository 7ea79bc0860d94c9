# What one does with this repository. `make` alone lists it. The library itself is built by cargo;
# CMakeLists.txt is for projects that use it.
PREFIX ?= /usr/local
CARGO ?= cargo
PYTHON ?= python3
export CARGO_TARGET_DIR = $(CURDIR)/target
LIB = target/lib
INCLUDE = target/include
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
SONAME := libdlpack_rs.so.$(firstword $(subst ., ,$(VERSION)))
# Named in every build of the library: a target out of cargo's configuration or CARGO_BUILD_TARGET
# would put it elsewhere, and an older one would be taken for it.
HOST = $(shell $(CARGO) -vV | sed -n 's/^host: //p')

# $(call need,tool:debian-package ...) says what to install before anything starts.
need = @missing=; for pair in $(1); do command -v "$${pair%%:*}" >/dev/null || \
	missing="$$missing $${pair\#*:}"; done; [ -z "$$missing" ] || \
	{ echo "make $@ needs tools that are not installed: apt-get install$$missing"; exit 1; }
RUST = $(CARGO):rustup
C = gcc:gcc g++:g++
CMAKE = cmake:cmake make:make

.DEFAULT_GOAL = help
.PHONY: help build install demo check lint test test-long soak sanitize miri coverage mutants wheel \
	interop test-pythons test-oneapi test-windows test-cross test-avx512 test-cuda bench-cuda bench \
	fuzz fuzz-long clean

help:  ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 21

build:  ## build the release library; leaves target/lib and target/include
	$(call need,$(RUST) gcc:gcc objcopy:binutils)
	$(CARGO) build --release --locked -p dlpack_rs_cdylib --target $(HOST)
	@mkdir -p $(LIB) $(INCLUDE)
	@ln -sfn ../../include $(INCLUDE)/dlpack
	@for name in libdlpack_rs.so $(SONAME); do \
	  ln -sf ../$(HOST)/release/libdlpack_rs.so $(LIB)/$$name; done
	@cdylib/static.sh target/$(HOST)/release/libdlpack_rs.a $(LIB)/libdlpack_rs.a

install:  ## install below PREFIX (/usr/local), or DESTDIR/PREFIX
	$(call need,$(RUST) $(CMAKE))
	cmake -S . -B target/cmake-install -DCMAKE_INSTALL_PREFIX="$(PREFIX)" \
	  -DDLPACK_RS_CARGO_TARGET_DIR="$(CARGO_TARGET_DIR)"
	cmake --build target/cmake-install
	DESTDIR="$(DESTDIR)" cmake --install target/cmake-install

demo:  ## build the library, find it from a C program with CMake, and use it from Python
	$(call need,$(RUST) $(CMAKE) $(C))
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
	"tests/python/run.sh" \
	"python/wheel.sh && python/test_wheel.sh" \
	"headers/check.sh" \
	"tests/lint.sh" \
	"c_tests/consumers.sh" \
	"tests/gpu/kernels.sh" \
	"tests/interop/run.py --fast" \
	"c_tests/static/run.sh $(INCLUDE)/dlpack $(LIB)" \
	"c_tests/hpp.sh $(INCLUDE)/dlpack $(LIB)" \
	"examples/run.sh $(INCLUDE) $(LIB)" \
	"c_tests/laws.sh $(INCLUDE)/dlpack $(LIB)" \
	"docs/check_quotes.py"
# What needs tools for other platforms, or much from the package index: .ci/run adds them.
PLATFORM_TESTS =
# Options of tests/steps.sh.
STEPS =

# What tells the most in the least time: house rules, units, pointers and errors, the file's laws.
CHECKS = \
	"cargo fmt --all --check && echo 1 passed, 0 failed" \
	"cargo test --locked --no-fail-fast $(addprefix --test ,house print names plain packed cast \
	  overlap saturation fuzz_seeds)" \
	"ONLY='catalogue sweep test_error test_copy test_share test_validate test_workers' \
	  NO_VALGRIND=1 NO_LAWS=1 c_tests/run.sh $(INCLUDE)/dlpack $(LIB)" \
	"c_tests/laws.sh $(INCLUDE)/dlpack $(LIB)" \
	"c_tests/static/run.sh $(INCLUDE)/dlpack $(LIB)"

check: build  ## what is quickest to tell that something is wrong
	$(call need,$(RUST) $(C) readelf:binutils)
	@exec tests/steps.sh $(CHECKS)

lint:  ## rustfmt, clippy, rustdoc, shellcheck
	$(call need,$(RUST) shellcheck:shellcheck)
	tests/lint.sh

test: build  ## run every test there is
	$(call need,$(RUST) $(CMAKE) $(C) ninja:ninja-build pkg-config:pkg-config clang:clang \
	  valgrind:valgrind readelf:binutils $(PYTHON):python3)
	@exec tests/steps.sh $(STEPS) $(PLATFORM_TESTS) $(TESTS)

test-long: build  ## 100,000 copies against NumPy, overlap in larger worlds; LONG="COUNT SEED"
	$(call need,$(RUST) $(PYTHON):python3)
	DLRS_LONG=1 $(CARGO) test --locked --release --test overlap
	DLPACK_RS_LIBRARY="$(CURDIR)/$(LIB)/libdlpack_rs.so" $$(examples/python/venv.sh \
	  examples/python/requirements.txt) -B tests/python/long.py $(LONG)

# `.ci/run` fetches 3.14 and 3.15 only: tests find what is in target/pythons/bin.
test-pythons: build  ## the Python layer on CPython 3.14, 3.15, debug builds, without the GIL
	$(call need,gcc:gcc $(PYTHON):python3 dpkg:dpkg)
	tests/python/get_pythons.sh target/pythons debug free-threaded
	tests/python/run.sh $(LIB)/libdlpack_rs.so -k every_python

SOAK_MINUTES = 240
SOAK_SEED = 1
soak: build  ## random operations on 4 threads for hours; SOAK_MINUTES=240 SOAK_SEED=1
	$(call need,gcc:gcc)
	c_tests/soak/run.sh $(INCLUDE)/dlpack $(LIB) $$(($(SOAK_MINUTES) * 60)) $(SOAK_SEED)

sanitize:  ## the tests with sanitizers, of the library too; SANITIZE="rust address thread"
	tests/sanitize.sh $(SANITIZE)

miri:  ## the core under Miri, by both of Rust's aliasing models, where a nightly toolchain has it
	tests/miri.sh

coverage: build  ## which lines of src/ the C and Python tests run; writes target/coverage
	tests/coverage.sh

mutants:  ## change the core in one place at a time: do tests notice? MUTANTS="--share 1/20"
	$(call need,$(RUST) gcc:gcc $(PYTHON):python3 patch:patch)
	$(PYTHON) -B tests/mutants.py $(MUTANTS)

test-oneapi: build  ## the oneAPI example, on a device that Intel's wheels make of the CPU
	$(call need,gcc:gcc $(PYTHON):python3)
	examples/oneapi/run.sh $(INCLUDE) $(LIB)

wheel:  ## build the Python wheel into target/wheel, for glibc 2.17 and later, and test it
	$(call need,$(RUST) gcc:gcc $(PYTHON):python3 readelf:binutils)
	python/wheel.sh
	python/test_wheel.sh

interop: build  ## exchange tensors with every system there is; writes docs/interop.md
	$(call need,$(PYTHON):python3)
	$(PYTHON) -B tests/interop/run.py

test-windows:  ## the .dll and the C and C++ tests, under wine (docs/platforms.md)
	$(call need,gcc:gcc)
	platforms/windows.sh

test-cuda:  ## the device layer on a real NVIDIA GPU, with torch and CuPy (docs/devices.md)
	c_tests/gpu/cuda.sh test
	c_tests/gpu/cuda.sh sanitize || [ $$? -eq 3 ] # not installed

bench-cuda:  ## copies on a GPU next to cuMemcpyAsync, torch, CuPy; writes docs/benchmarks-cuda.md
	c_tests/gpu/cuda.sh bench $(BENCH)

test-cross:  ## other processors under qemu (docs/platforms.md)
	$(call need,gcc:gcc)
	platforms/cross.sh

test-avx512:  ## the engine on an emulated AVX-512 processor (docs/testing.md)
	$(call need,$(RUST) gcc:gcc)
	tests/avx512/run.sh

bench: build  ## speed next to memcpy, NumPy, torch: docs/benchmarks.md; BENCH="--base dd98b55 --cpu"
	$(call need,$(PYTHON):python3 cc:gcc)
	benches/bench.sh $(BENCH)

FUZZ_SECONDS = 240
FUZZ_HOURS = 1
fuzz: build  ## random runs, as in make test; FUZZ_SECONDS=240 SEED=1 (docs/testing.md)
	$(call need,$(RUST) gcc:gcc g++:g++ $(PYTHON):python3)
	RANDOM_SECONDS=$(FUZZ_SECONDS) tests/random.sh

fuzz-long: build  ## the same for FUZZ_HOURS=1
	$(call need,$(RUST) gcc:gcc g++:g++ $(PYTHON):python3)
	RANDOM_SECONDS=$$(($(FUZZ_HOURS) * 3600)) tests/random.sh

clean:  ## remove everything that was built
	rm -rf target
