#!/usr/bin/env bash
# Debian packages of the build tree that `binary.sh x86_64-unknown-linux-gnu` left: the runtime,
# named by the SONAME, and -dev, in target/packages. For releases; a package for Debian itself would
# be built by its own tools.
set -euo pipefail
. "$(dirname "$0")/common.sh"
build=$out/build-x86_64-unknown-linux-gnu work=$out/deb
arch=$(dpkg --print-architecture) multiarch=$(gcc -print-multiarch)
[ -d "$build" ] || { echo "deb.sh: first packaging/binary.sh x86_64-unknown-linux-gnu"; exit 1; }
rm -rf "$work"
cmake -S "$out/src/$name" -B "$build" -DCMAKE_INSTALL_LIBDIR="lib/$multiarch" \
  -DCMAKE_INSTALL_PREFIX=/usr -DDLPACK_RS_CARGO_FLAGS=--offline
# Nothing is compiled: the same library, in other folders.
touch_nothing=(env "CARGO_HOME=$out/home")
[ ! -x "$out/linker" ] ||
  touch_nothing+=("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER=$out/linker")
"${touch_nothing[@]}" cmake --build "$build"
for component in Runtime Development; do
  DESTDIR=$work/$component cmake --install "$build" --component $component --strip
done
library=$(echo "$work"/Runtime/usr/lib/"$multiarch"/libdlpack_rs.so."$version")
strip --strip-unneeded "$library"
strip --strip-debug --enable-deterministic-archives \
  "$work/Development/usr/lib/$multiarch/libdlpack_rs.a"
soname=$(readelf -d "$library" | sed -n 's/.*soname: \[\(.*\)\]/\1/p')
# Debian's name of it: libdlpack_rs.so.0.1 is in libdlpack-rs0.1.
runtime=libdlpack-rs${soname#libdlpack_rs.so.}
glibc=$(readelf -V "$library" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -V | tail -n 1)

one() { # one COMPONENT PACKAGE CONTROL
  local tree=$work/$1 doc size
  doc=$tree/usr/share/doc/$2
  mkdir -p "$doc" "$tree/DEBIAN"
  rm -rf "$tree/usr/share/doc/dlpack_rs"
  { echo "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/"
    echo "Upstream-Name: libdlpack_rs"
    echo "Source: $repository"
    echo
    echo "Files: *"
    echo "Copyright: the libdlpack_rs authors"
    echo "License: Apache-2.0"
    echo " On Debian systems, see /usr/share/common-licenses/Apache-2.0."
    echo "Comment:"
    sed 's/^$/./; s/^/ /' NOTICE
  } >"$doc/copyright"
  { echo "libdlpack-rs ($version-1) unstable; urgency=medium"
    echo
    echo "  * Release $version."
    echo
    echo " -- The libdlpack_rs authors <$mail>  $(date -uRd "@$SOURCE_DATE_EPOCH")"
  } | gzip -9n >"$doc/changelog.Debian.gz"
  [ "$1" = Runtime ] || gzip -9n <CHANGELOG.md >"$doc/changelog.gz"
  if [ "$1" = Runtime ]; then
    gzip -9n <CHANGELOG.md >"$doc/changelog.gz"
    echo "libdlpack_rs ${soname#libdlpack_rs.so.} $2 (>= $version)" >"$tree/DEBIAN/shlibs"
    echo "activate-noawait ldconfig" >"$tree/DEBIAN/triggers"
  fi
  find "$tree" -type d -exec chmod 755 {} +
  find "$tree" -type f -exec chmod 644 {} +
  size=$(du -k --apparent-size -s "$tree/usr" | cut -f1)
  sed -e "s|@RUNTIME@|$runtime|; s|@VERSION@|$version|; s|@ARCH@|$arch|; s|@SIZE@|$size|" \
    -e "s|@URL@|$repository|; s|@MAIL@|$mail|; s|@DEPENDS@|libc6 (>= $glibc)|" \
    "packaging/debian/$3" >"$tree/DEBIAN/control"
  (cd "$tree" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum >DEBIAN/md5sums)
  find "$tree" -exec touch -hd "@$SOURCE_DATE_EPOCH" {} +
  dpkg-deb --root-owner-group --uniform-compression -Zxz -b "$tree" "$out" >/dev/null
  echo "$out/$2_$version-1_$arch.deb"
}
mail=noreply@example.org # nobody's: releases name no maintainer
one Runtime "$runtime" control.in
one Development libdlpack-rs-dev control-dev.in
