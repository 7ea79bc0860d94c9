#!/usr/bin/env bash
# Runs the two commands of README.md in a bare Debian or Ubuntu that has make, a C compiler and
# python3, and prints their durations: clean_root.sh [SUITE [GOAL | VARIABLE=VALUE]...]
#
# SUITE is bookworm, trixie, sid, or Ubuntu's jammy or noble; the default GOAL is `demo`. SETUP is passed
# on. The tree is cloned, with uncommitted changes. Needs root, network, and mmdebstrap or
# debootstrap (Ubuntu: mmdebstrap); the root is created once, below target/clean, and unpacked for
# each run.
set -euo pipefail
CDPATH='' cd "$(dirname "$0")/.."
suite=${1:-bookworm}
shift || true
goals=() variables=()
for word; do
  case $word in
    *=*) variables+=("$word") ;;
    *) goals+=("$word") ;;
  esac
done
[ "${#goals[@]}" -gt 0 ] || goals=(demo)
[ "$(id -u)" -eq 0 ] || { echo "clean_root.sh: not run, because it needs root"; exit 1; }
packages=apt,make,gcc,libc6-dev,python3
mirror=http://deb.debian.org/debian parts=main trust=
security=$mirror-security
case $suite in
  sid) trust='[check-valid-until=no] ' ;; # mirrors of it may lag
  jammy | noble)
    mirror=http://archive.ubuntu.com/ubuntu parts='main universe'
    security=$mirror
    # Debian lacks Ubuntu's keys. The root is temporary, and holds no secret.
    trust='[trusted=yes] ' ;;
esac
here=$PWD/target/clean
archive=$here/$suite.tar root=$here/$suite
mkdir -p "$here"
sources() {
  local line lines=("$mirror $suite")
  [ "$suite" = sid ] || lines+=("$mirror $suite-updates" "$security $suite-security")
  for line in "${lines[@]}"; do echo "deb $trust$line $parts"; done
}
if [ ! -f "$archive" ]; then
  echo "== a bare $suite"
  if command -v mmdebstrap >/dev/null; then
    sources | mmdebstrap --quiet --variant=minbase --include="$packages" "$suite" \
      "$here/$suite-new.tar" -
  elif command -v debootstrap >/dev/null; then
    rm -rf "$root"
    debootstrap --variant=minbase --include="$packages" "$suite" "$root" "$mirror" >"$here/log"
    sources >"$root/etc/apt/sources.list"
    tar -C "$root" -cf "$here/$suite-new.tar" .
  else
    echo "clean_root.sh: apt-get install mmdebstrap"
    exit 1
  fi
  mv "$here/$suite-new.tar" "$archive"
fi
rm -rf "$root"
mkdir "$root"
tar -C "$root" -xf "$archive"
git clone --quiet --no-hardlinks . "$root/src"
git ls-files -z --modified --others --exclude-standard | xargs -0 -r cp --parents -t "$root/src"
# This machine's network settings: names, and trusted certificates.
cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
mkdir -p "$root/usr/local/share/ca-certificates"
trusted=/etc/ssl/certs/ca-certificates.crt
[ ! -f "$trusted" ] || cp "$trusted" "$root/root/trusted.crt"

inside() { # inside COMMAND...: with mounts that go when it ends
  unshare --mount --pid --fork --kill-child sh -c '
    root=$1
    shift
    mount -t proc proc "$root/proc"
    mount --rbind /dev "$root/dev"
    mount -t tmpfs shm "$root/dev/shm" 2>/dev/null
    chroot "$root" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 "$@"
  ' sh "$root" "$@"
}
settings=(SETUP="${SETUP:-}")
if [ -f "$trusted" ]; then
  settings+=(PIP_CERT=/root/trusted.crt CARGO_HTTP_CAINFO=/root/trusted.crt
    REQUESTS_CA_BUNDLE=/root/trusted.crt SSL_CERT_FILE=/root/trusted.crt)
fi
status=0
for goal in "${goals[@]}"; do
  SECONDS=0
  if inside "${settings[@]}" make -C /src "$goal" \
      ${variables[@]+"${variables[@]}"} 2>&1 | tee "$here/$suite-$goal.log"; then
    said=passes
  else
    said=FAILS status=1
  fi
  echo "== make $goal in a bare $suite: $said, $SECONDS s"
done
[ "$status" -ne 0 ] || rm -rf "$root"
exit "$status"
