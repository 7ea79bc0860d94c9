#!/bin/busybox sh
# shellcheck shell=dash
# The guest's first process (run.sh): runs the tests, prints to the serial port, ends the emulator.
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
exec >/dev/ttyS0 2>&1
echo "guest: $(sed -n 's/^model name.*: //p' /proc/cpuinfo), Linux $(uname -r)"
cd /tests || exit
. ./which
run() { # run NAME PROGRAM ARGUMENT...
  echo "==== $1, $(cut -d' ' -f1 /proc/uptime) s since the start"
  shift
  "$@"
  echo "exit status $?"
}
quietly() { # its last lines alone; more, if it fails
  "$@" >/tmp/log
  set -- $?
  tail -n $(($1 ? 200 : 20)) /tmp/log
  return "$1"
}
run emulator ./emulator 1000
# Any machine can test the other levels.
export LEVELS="avx512 vbmi"
# shellcheck disable=SC2086
[ "$ENGINE" = none ] || run "engine, $LEVELS" ./engine --test-threads 1 ${ENGINE:+--exact $ENGINE}
for program in $PROGRAMS; do
  run "$program, avx512" quietly env LEVEL=4 "./$program"
  run "$program, vbmi" quietly env LEVEL=5 "./$program"
done
echo "guest: done"
sleep 5 # until the port, which is slow, has sent it
# Bochs ends at this word, written to its port 8900h.
for letter in S h u t d o w n; do
  printf $letter | dd of=/dev/port bs=1 seek=$((0x8900)) conv=notrunc 2>/dev/null
done
reboot -f
