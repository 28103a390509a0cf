#!/bin/sh
# Starts evcxr's kernel with the library compiled already. Argument: Jupyter's connection file.
#
# Each kernel works in a copy of its own: two in one folder overwrite each other's cells.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
base=${TMPDIR:-/tmp}/syncscope-kernel

# Copies of kernels that were killed.
for old in "$base".*; do
    process=${old#"$base".}
    kill -0 "${process%%.*}" 2>/dev/null || rm -rf "$old" 2>/dev/null || true
done

own=$(mktemp -d "$base.$$.XXXXXX")
trap 'rm -rf "$own"' EXIT
cp -a "$here/warm/." "$own"
EVCXR_TMPDIR=$own EVCXR_CONFIG_DIR=$here/config @EVCXR@ --control_file "$1" &
kernel=$!
trap 'kill "$kernel" 2>/dev/null' HUP INT TERM
wait "$kernel"
