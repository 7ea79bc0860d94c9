#!/usr/bin/env bash
# Makes the packages in target/packages and tries each: run.sh [STEP...], of
#   source binary others deb wheel release again root conan vcpkg meson components
# all of them without arguments. `release` collects what is to be published, `again` builds it from a
# clone elsewhere and compares. What a step needs and does not find is said: "not run". Tools from
# the package index are installed into target/packages/tools. Ends with "packages: N passed, N failed".
. "$(dirname "$0")/common.sh"
native=x86_64-unknown-linux-gnu
archive=$out/$name-src.tar.gz

# expand FILE TO: a recipe of this release, with the source archive of this folder.
expand() {
  sed -e "s|@VERSION@|$version|g; s|@URL@|$repository|g; s|@SOURCE_URL@|${source_url:-file://$archive}|g" \
    -e "s|@SHA256@|$(sha256sum "$archive" | cut -d' ' -f1)|g" \
    -e "s|@SHA512@|$(sha512sum "$archive" | cut -d' ' -f1)|g" "$1" >"$2"
  fails grep -n '@[A-Z0-9_]*@' "$2"
}

# ---- archives ----------------------------------------------------------------------------------
same_sources() { # the same commit gives the same bytes
  packaging/source.sh
  cp "$archive" "$out/first.tar.gz"
  (umask 077; packaging/source.sh)
  cmp "$archive" "$out/first.tar.gz"
  rm "$out/first.tar.gz"
  tar xzOf "$archive" "$name/.cargo/config.toml" | grep -F 'directory = "vendor"'
}
lean() { # lean LIBRARY: the SONAME that CMake gives, nothing of a debugger, no panic
  readelf -d "$1" | grep -F "soname: [$(basename "$(find "$(dirname "$1")" -name 'libdlpack_rs.so.*' \
    -type l | head -n 1)")]"
  fails sh -c "readelf -S '$1' | grep -F .debug_"
  fails sh -c "readelf -W --dyn-syms '$1' | grep 'UND abort'"
}
native_archive() { # built without a network and without crates; used from where it is unpacked
  packaging/binary.sh $native
  rm -rf "$out/moved" && mkdir "$out/moved"
  tar xzf "$out/$name-$native.tar.gz" -C "$out/moved"
  lean "$out/moved/$name-$native/lib/libdlpack_rs.so.$version"
  consumer "$out/moved/$name-$native" "$out/moved/build"
  # No file contains its build folder.
  fails grep -rlF -e "$root" "$out/moved/$name-$native"
}
other_archive() { # other_archive TRIPLE COMPILER PACKAGE
  command -v "$2" >/dev/null || not_run "package $3"
  packaging/binary.sh "$1"
  case $1 in
  *-windows-*) tar tzf "$out/$name-$1.tar.gz" | grep -E '/bin/dlpack_rs\.dll$' ;;
  *) lean "$out/$name-$1/lib/libdlpack_rs.so.$version" ;;
  esac
}
step_source() { row "source archive: the same bytes twice" same_sources; }
step_binary() { row "$native: built without a network, used from the archive" native_archive; }
step_others() {
  row "aarch64-unknown-linux-gnu" other_archive aarch64-unknown-linux-gnu aarch64-linux-gnu-gcc \
    gcc-aarch64-linux-gnu
  row "x86_64-pc-windows-gnu" other_archive x86_64-pc-windows-gnu x86_64-w64-mingw32-gcc \
    gcc-mingw-w64-x86-64
}

# ---- Debian ------------------------------------------------------------------------------------
debs() { (cd "$out" && ls libdlpack-rs*_"$version"-1_*.deb); }
make_debs() {
  rm -f "$out"/*.deb
  packaging/deb.sh
  [ "$(debs | wc -l)" -eq 2 ]
  (cd "$out" && sha256sum libdlpack-rs*.deb) >"$out/first.sum"
  packaging/deb.sh
  (cd "$out" && sha256sum -c first.sum)
}
lint_debs() {
  command -v lintian >/dev/null || not_run "package lintian"
  # Only Debian's own packages close a bug.
  (cd "$out" && lintian --allow-root --fail-on error,warning \
    --suppress-tags initial-upload-closes-no-bugs libdlpack-rs*_"$version"-1_*.deb)
}
step_deb() {
  command -v dpkg-deb >/dev/null || { echo "deb: not run: package dpkg"; return; }
  row "deb: runtime and -dev, the same bytes twice" make_debs
  row "deb: lintian" lint_debs
}
clean_root() { # installed, used, and removed where nothing else is
  command -v mmdebstrap >/dev/null || not_run "package mmdebstrap"
  [ "$(id -u)" -eq 0 ] || not_run "needs root"
  local tree=$out/root suite mirror
  # shellcheck disable=SC1091
  suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
  mirror=$(grep -rhoE 'https?://[^ ]+/debian/?( |$)' /etc/apt/sources.list.d \
    "$(ls /etc/apt/sources.list 2>/dev/null || echo /dev/null)" | head -n 1 | tr -d ' ')
  if [ ! -e "$out/root.tar" ]; then
    mmdebstrap --variant=minbase --include=gcc,libc6-dev,pkg-config "$suite" "$out/root.tar" \
      ${mirror:+"$mirror"} || not_run "no Debian mirror"
  fi
  rm -rf "$tree" && mkdir "$tree"
  tar xf "$out/root.tar" -C "$tree" --exclude=./dev
  cp "$out"/libdlpack-rs*_"$version"-1_*.deb examples/c/hello.c "$tree/root/"
  chroot "$tree" sh -ec 'find / -xdev ! -path "/proc/*" ! -path "/var/*" | sort >/root/before
    dpkg -i /root/*.deb
    cd /root
    gcc hello.c $(pkg-config --cflags --libs dlpack_rs) -o hello && ./hello >said
    gcc hello.c $(pkg-config --cflags dlpack_rs) -l:libdlpack_rs.a -o static && ./static >>said
    dpkg -r libdlpack-rs-dev && ./hello >>said
    dpkg --purge $(dpkg-query -W -f "\${Package} " "libdlpack-rs*")
    find / -xdev ! -path "/proc/*" ! -path "/var/*" ! -path "/root/*" ! -path /etc/ld.so.cache |
      sort >/root/after
    grep -vxF -f before after && exit 1; exit 0'
  cat examples/expected/c-hello.txt examples/expected/c-hello.txt examples/expected/c-hello.txt |
    diff - "$tree/root/said"
  rm -rf "$tree"
}
step_root() { row "deb: installed, used and removed in a clean root" clean_root; }

# ---- the release -------------------------------------------------------------------------------
wheel() {
  python/wheel.sh
  ls target/wheel/*.whl
}
step_wheel() { row "wheel" wheel; }
collect() { # what is to be published, what it contains, and its sums
  tools
  rm -rf "$out/release" && mkdir "$out/release"
  find "$out" target/wheel -maxdepth 1 \( -name "$name-*.tar.gz" -o -name '*.deb' -o -name '*.whl' \) \
    -exec cp -t "$out/release" {} +
  cd "$out/release"
  python3 -B "$root/packaging/sbom.py" "$version" * >"$name.spdx.json"
  "$tools/bin/pyspdxtools" -i "$name.spdx.json"
  sha256sum * >SHA256SUMS
}
step_release() { row "release: the files, SBOM, SHA256SUMS" collect; }
same_again() {
  tools
  local clone
  clone=$(mktemp -d)
  git clone --quiet "$root" "$clone/elsewhere"
  TOOLS=$tools "$clone/elsewhere/packaging/run.sh" source binary others deb wheel release
  (cd "$clone/elsewhere/target/packages/release" && sha256sum *) | diff - <(cd "$out/release" && sha256sum *)
  rm -rf "$clone"
}
step_again() { row "release: the same bytes from a clone in another folder" same_again; }

# ---- recipes -----------------------------------------------------------------------------------
conan_create() {
  tools
  [ -x "$tools/bin/conan" ] || not_run "PyPI's conan"
  local recipe=$out/conan
  rm -rf "$recipe" && cp -r packaging/conan "$recipe"
  expand packaging/conan/conandata.yml.in "$recipe/conandata.yml"
  export CONAN_HOME=$out/conan-home
  "$tools/bin/conan" profile detect --exist-ok
  "$tools/bin/conan" create "$recipe" --version "$version" \
    -c tools.cmake.cmaketoolchain:generator="Unix Makefiles"
}
step_conan() { row "conan create" conan_create; }

vcpkg_port() { # the portfile by CMake, with stand-ins of the functions that vcpkg would give it
  local port=$out/vcpkg/ports/dlpack-rs
  # cargo's build is kept, for the other kind of library.
  rm -rf "$out/vcpkg"/{ports,packages,test} "$out/vcpkg/build/rel" && mkdir -p "$port"
  expand packaging/vcpkg/vcpkg.json.in "$port/vcpkg.json"
  expand packaging/vcpkg/portfile.cmake.in "$port/portfile.cmake"
  cp packaging/vcpkg/usage "$port/"
  python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$port/vcpkg.json"
  cmake "-DPORT_DIR=$port" "-DVERSION=$version" "-DVCPKG_LIBRARY_LINKAGE=$1" \
    "-DCURRENT_BUILDTREES_DIR=$out/vcpkg/build" "-DCURRENT_PACKAGES_DIR=$out/vcpkg/packages" \
    -P packaging/vcpkg/stand_in.cmake
  cmake -S packaging/conan/test_package -B "$out/vcpkg/test" \
    -Ddlpack_rs_DIR="$out/vcpkg/packages/share/dlpack_rs"
  cmake --build "$out/vcpkg/test"
  "$out/vcpkg/test/test_package"
  if [ "$1" = static ]; then fails sh -c "ldd '$out/vcpkg/test/test_package' | grep dlpack"; fi
}
step_vcpkg() {
  row "vcpkg port, dynamic, by stand-ins" vcpkg_port dynamic
  row "vcpkg port, static, by stand-ins" vcpkg_port static
  if command -v vcpkg >/dev/null; then
    row "vcpkg format-manifest" vcpkg format-manifest "$out/vcpkg/ports/dlpack-rs/vcpkg.json"
  else
    echo "vcpkg format-manifest: not run: vcpkg"
  fi
}
meson_project() {
  tools
  local project=$out/meson
  rm -rf "$project" && mkdir -p "$project/subprojects/packagefiles/dlpack_rs"
  cp packaging/meson/meson.build "$project/subprojects/packagefiles/dlpack_rs/"
  expand packaging/meson/dlpack_rs.wrap.in "$project/subprojects/dlpack_rs.wrap"
  cp examples/c/hello.c "$project/"
  printf '%s\n' "project('consumer', 'c', default_options: ['c_std=c11'])" \
    "executable('hello', 'hello.c', dependencies: dependency('dlpack_rs', version: '>=$version'))" \
    >"$project/meson.build"
  "$tools/bin/meson" setup "$project/build" "$project"
  meson_run
  ldd "$project/build/hello" | grep -F dlpack_rs
}
meson_static() {
  tools
  local project=$out/meson
  "$tools/bin/meson" configure "$project/build" -Ddefault_library=static
  meson_run
  fails sh -c "ldd '$project/build/hello' | grep dlpack_rs"
}
meson_run() {
  "$tools/bin/meson" compile -C "$project/build"
  "$project/build/hello" | diff examples/expected/c-hello.txt -
}
step_meson() {
  command -v ninja >/dev/null || { echo "meson: not run: package ninja-build"; return; }
  row "meson subproject, shared" meson_project
  row "meson subproject, static" meson_static
}

# ---- installing --------------------------------------------------------------------------------
components() { # Runtime is what a program needs; both and uninstall leave nothing over
  local build=$out/build-components tree=$out/components
  rm -rf "$build" "$tree"
  cmake -S . -B "$build" "-DDLPACK_RS_CARGO_TARGET_DIR=$root/target" -DCMAKE_INSTALL_LIBDIR=lib \
    -DCMAKE_INSTALL_PREFIX=/usr
  cmake --build "$build"
  DESTDIR=$tree cmake --install "$build" --component Runtime
  (cd "$tree/usr" && find . ! -type d ! -path './share/*' | sort) >"$out/runtime.txt"
  [ "$(wc -l <"$out/runtime.txt")" -eq 2 ]
  grep -x "./lib/libdlpack_rs.so.$version" "$out/runtime.txt"
  DESTDIR=$tree cmake --install "$build" --component Development
  consumer "$tree/usr" "$out/build-consumer"
  DESTDIR=$tree cmake --build "$build" --target dlpack_rs_uninstall
  [ -z "$(find "$tree" ! -type d)" ]
  [ -z "$(find "$tree" -name 'dlpack*')" ]
  fails cmake --build "$build" --target dlpack_rs_uninstall
}
step_components() { row "install components, and uninstall" components; }

[ $# -gt 0 ] || set -- source binary others deb wheel release again root conan vcpkg meson components
for step in "$@"; do
  declare -F "step_$step" >/dev/null || { echo "run.sh: unknown step $step"; exit 2; }
  "step_$step"
done
totals packages
