#!/usr/bin/env bash
# The copy engine on an emulated processor with AVX-512 and VBMI, for machines that have neither:
# tests/engine and the programs of c_tests/levels, at the levels avx512 and vbmi, under Linux,
# which saves the registers as on a real one, in Bochs. First the emulator's instructions are
# compared with loops. An hour with an optimized Bochs 3.0 (docs/testing.md); Debian 12's 2.7 is
# three times as slow, and Linux did not start in it. Progress: target/avx512/serial.txt. In the
# environment: BOCHS, the emulator, and BOCHS_DISPLAY, which it needs; KERNEL, a file, where
# apt-get cannot download Debian's; ENGINE, names of tests/engine's tests (or none), and PROGRAMS,
# of C programs, to run these alone. Ends with `avx512: N passed, M failed`.
set -u
CDPATH='' cd "$(dirname "$0")/../.." || exit 1
work=target/avx512 bochs=${BOCHS:-bochs} busybox=/bin/busybox boot=/usr/lib/ISOLINUX/isolinux.bin
linux32=/usr/lib/syslinux/modules/bios/ldlinux.c32 vga=/usr/share/vgabios/vgabios.bin
bios=/usr/share/bochs/BIOS-bochs-latest missing=
for pair in cargo:rustup gcc:gcc cpio:cpio xorriso:xorriso "$bochs:bochs" $busybox:busybox-static \
  $boot:isolinux $linux32:syslinux-common $vga:vgabios $bios:bochsbios; do
  command -v "${pair%%:*}" >/dev/null || [ -r "${pair%%:*}" ] || missing="$missing ${pair#*:}"
done
[ -z "$missing" ] || { echo "tests/avx512 needs: apt-get install$missing"; exit 1; }
mkdir -p $work && work=$(realpath $work) && guest=$work/guest iso=$work/iso || exit 1
rm -rf "$guest" "$iso" "$work/bochs.log"
: >"$work/serial.txt"
mkdir -p "$guest"/{bin,dev,proc,tests,tmp} "$iso"

# Debian's kernel for PCs: the one for clouds hung early.
if [ -z "${KERNEL:-}" ]; then
  package=$(apt-cache depends linux-image-amd64 | sed -n 's/.*Depends: //p' | tail -n 1)
  (cd "$work" && { ls "$package"_*.deb >/dev/null 2>&1 || apt-get download "$package"; } &&
    dpkg-deb -x "$package"_*.deb kernel) ||
    { echo "tests/avx512: no $package; apt-get update, or KERNEL=/boot/vmlinuz-..."; exit 1; }
  KERNEL=$work/kernel/boot/vmlinuz-${package#linux-image-}
fi

# Static programs, or those with their libraries: there are no others.
triple=x86_64-unknown-linux-gnu
RUSTFLAGS=-Ctarget-feature=+crt-static CARGO_TARGET_DIR=$work "${CARGO:-cargo}" test --release \
  --locked --target $triple --test engine --no-run 2>&1 | tee "$work/build.txt"
engine=$(sed -n 's/.*engine.*(\(.*\))$/\1/p' "$work/build.txt")
strip -o "$guest/tests/engine" "$engine" || exit 1
gcc -O1 -std=c11 -Wall -Wextra -Werror -static tests/avx512/emulator.c \
  -o "$guest/tests/emulator" || exit 1
CARGO_TARGET_DIR=$work c_tests/levels/run.sh include "$guest/tests" || exit 1
ldd "$guest/tests/test_engine" | grep -o '/[^ ]*' | grep -v "^$guest" | while read -r library; do
  cp -L --parents "$library" "$guest"
done
cp -L $busybox "$guest/bin/busybox"
cp tests/avx512/init.sh "$guest/init"
programs=${PROGRAMS-test_engine}
echo "ENGINE='${ENGINE:-}' PROGRAMS='$programs'" >"$guest/tests/which"

# A CD: the BIOS loads it, and no driver is needed.
(cd "$guest" && find . | cpio -o -H newc -R 0:0 --quiet) >"$iso/initrd" || exit 1
cp "$KERNEL" "$iso/vmlinuz" && cp $boot $linux32 "$iso" || exit 1
cat >"$iso/isolinux.cfg" <<END
default linux
prompt 0
label linux
linux vmlinuz
initrd initrd
append console=ttyS0,115200 nokaslr mitigations=off nmi_watchdog=0 panic=-1 quiet
END
xorriso -as mkisofs -quiet -o "$work/cd.iso" -b isolinux.bin -c boot.cat -no-emul-boot \
  -boot-load-size 4 -boot-info-table "$iso" || exit 1

# Cannon Lake, the first with VBMI: on Bochs's Tiger Lake, Linux loops in page faults.
cat >"$work/bochsrc" <<END
config_interface: textconfig
display_library: ${BOCHS_DISPLAY:-rfb, options="timeout=0"}
cpu: model=corei3_cnl, ips=100000000, reset_on_triple_fault=0, ignore_bad_msrs=1
memory: guest=1024, host=1024
romimage: file=$bios, options=fastboot
vgaromimage: file=$vga
ata0-master: type=cdrom, path=$work/cd.iso, status=inserted
boot: cdrom
clock: sync=none
com1: enabled=1, mode=file, dev=$work/serial.txt
log: $work/bochs.log
panic: action=fatal
error: action=ignore
info: action=ignore
debug: action=ignore
END
# Debian's Bochs has a debugger, which waits for "continue"; init ends it by its shutdown port.
echo c | "$bochs" -q -f "$work/bochsrc" >"$work/bochs.txt" 2>&1
tr -d '\r' <"$work/serial.txt" | sed -n '/^guest: /,$p'
tr -d '\r' <"$work/serial.txt" | awk '
  /^guest: done/ { done = 1 }
  /^test result:/ { passed += $4; now = $6 }
  /^[0-9]+ passed, [0-9]+ failed$/ { passed += $1; now = $3 }
  /^exit status / { failed += now ? now : $3 != 0; now = 0 }
  END {
    if (!done) { print "the guest did not come to its end: bochs.log, serial.txt"; ++failed }
    printf "avx512: %d passed, %d failed\n", passed, failed
    exit failed != 0 || passed == 0
  }'
