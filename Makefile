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

# $(call need,tool:debian-package ...) says what to install before anything starts.
need = @missing=; for pair in $(1); do command -v "$${pair%%:*}" >/dev/null || \
	missing="$$missing $${pair\#*:}"; done; [ -z "$$missing" ] || \
	{ echo "make $@ needs tools that are not installed: apt-get install$$missing"; exit 1; }
RUST = $(CARGO):rustup
C = gcc:gcc g++:g++
CMAKE = cmake:cmake make:make

.DEFAULT_GOAL = help
.PHONY: help build install demo test test-long test-windows test-cross bench bench-engine clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 21

build:  ## build the release library; leaves target/lib and target/include
	$(call need,$(RUST) gcc:gcc)
	$(CARGO) build --release --locked -p dlpack_rs_cdylib
	@mkdir -p $(LIB) $(INCLUDE)
	@ln -sfn ../../include $(INCLUDE)/dlpack
	@for name in libdlpack_rs.so $(SONAME); do ln -sf ../release/libdlpack_rs.so $(LIB)/$$name; done
	@ln -sf ../release/libdlpack_rs.a $(LIB)/libdlpack_rs.a

install:  ## install below PREFIX (/usr/local), or DESTDIR/PREFIX
	$(call need,$(RUST) $(CMAKE))
	cmake -S . -B target/cmake-install -DCMAKE_INSTALL_PREFIX=$(PREFIX) \
	  -DDLPACK_RS_CARGO_TARGET_DIR=$(CARGO_TARGET_DIR)
	cmake --build target/cmake-install
	DESTDIR=$(DESTDIR) cmake --install target/cmake-install

demo:  ## build the library, find it from a C program with CMake, and use it from Python
	$(call need,$(RUST) $(CMAKE) $(C))
	examples/demo.sh

# One line a step; each ends with its counts. One alone: make test TESTS='"c_tests/consumers.sh"'
TESTS = \
	"cargo test --locked --no-fail-fast" \
	"headers/check.sh" \
	"c_tests/run.sh $(INCLUDE)/dlpack $(LIB)" \
	"c_tests/laws.sh $(INCLUDE)/dlpack $(LIB)" \
	"c_tests/hpp.sh $(INCLUDE)/dlpack $(LIB)" \
	"c_tests/consumers.sh" \
	"examples/run.sh $(INCLUDE) $(LIB)" \
	"docs/check_quotes.py" \
	"tests/python/run.sh"
# What needs tools for other platforms: .ci/run adds them.
PLATFORM_TESTS =

test: build  ## run every test there is
	$(call need,$(RUST) $(CMAKE) $(C) ninja:ninja-build pkg-config:pkg-config clang:clang \
	  valgrind:valgrind readelf:binutils $(PYTHON):python3)
	@tests/steps.sh $(TESTS) $(PLATFORM_TESTS)

test-long: build  ## 100,000 copies of random views against NumPy; LONG="COUNT SEED"
	$(call need,$(PYTHON):python3)
	DLPACK_RS_LIBRARY=$(CURDIR)/$(LIB)/libdlpack_rs.so $$(examples/python/venv.sh \
	  examples/python/requirements.txt) -B tests/python/long.py $(LONG)

test-windows:  ## the .dll and the C and C++ tests, under wine (docs/platforms.md)
	$(call need,gcc:gcc)
	platforms/windows.sh

test-cross:  ## other processors under qemu (docs/platforms.md)
	$(call need,gcc:gcc)
	platforms/cross.sh

bench: build  ## next to memcpy, NumPy, torch; writes docs/benchmarks.md; BENCH=--quick: no docs
	$(call need,$(PYTHON):python3 cc:gcc)
	benches/bench.sh $(BENCH)

bench-engine:  ## the copy engine alone, next to memcpy, from Rust
	$(call need,$(RUST))
	$(CARGO) bench --bench copy

clean:  ## remove everything that was built
	rm -rf target
