#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes a built program, with all it needs on another node, as a tar archive to stdout.
#
#   cmake/package.sh BUILD_FOLDER
#
# The same build gives the same bytes: names are sorted, and times are the commit's (or SOURCE_DATE_EPOCH). What a node's
# own libraries must have is said on stderr.
set -euo pipefail
source=$(cd "$(dirname "$0")/.." && pwd)
build=$1
name=penstock-$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$build/CMakeCache.txt")
needs=""
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
cmake --install "$build" --prefix "$stage/$name" --strip >"$stage/log" 2>&1 || { cat "$stage/log" >&2; exit 1; }
for kind in GLIBC GLIBCXX; do
  newest=$(objdump -p "$stage/$name"/bin/* "$stage/$name"/lib/* | grep -ohE "\b${kind}_[0-9.]+" | sort -Vu | tail -1)
  needs+="$newest and "
done
echo "needs Open MPI ($(objdump -p "$stage/$name/bin/penstock-compute" | grep -o 'libmpi[.]so.*')), ${needs% and } or newer" >&2
moment=${SOURCE_DATE_EPOCH:-$(git -C "$source" log -1 --format=%ct 2>/dev/null || stat -c %Y "$source/CMakeLists.txt")}
tar -C "$stage" --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime="@$moment" -cf - "$name"
