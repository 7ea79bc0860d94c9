#!/bin/sh
# Prints the names of include/exports.txt that a library with the Cargo features $DLRS_FEATURES has;
# all of them if unset. A name belongs to its file, a file to its feature in src/capi/mod.rs.
set -eu
CDPATH='' cd "$(dirname "$0")/../.."
[ -n "${DLRS_FEATURES+set}" ] || exec sed 's/ .*//' include/exports.txt
features=" $(echo "$DLRS_FEATURES" | tr ',;' '  ') "
case $features in # it has others
*' module '*) features="$features$(sed -n 's/^module = //p' Cargo.toml | tr -c '[:lower:]' ' ') " ;;
esac
left_out=$(awk -v features="$features" '
    /^#\[cfg\(feature = / { split($0, part, "\""); needed = part[2]; next }
    needed != "" && !index(features, " " needed " ") { sub(";", "", $3); print "src/capi/" $3 ".rs" }
    { needed = "" }' src/capi/mod.rs)
# shellcheck disable=SC2086 # a list of files
sed -n 's/^pub .*extern "C" fn \(dlrs_[a-z0-9_]*\).*/\1/p' $left_out /dev/null |
    { sed 's/.*/^& /' | grep -vf - include/exports.txt; } | sed 's/ .*//'
