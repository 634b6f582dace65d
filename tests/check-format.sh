#!/bin/sh
# SPDX-License-Identifier: MIT
# Fails when a C file does not look as .clang-format says; names each such file.
# usage: check-format.sh [SRCDIR]
cd "${1:-${srcdir:-.}}" || exit 1
if ! command -v clang-format >/dev/null 2>&1; then
	echo "SKIPPED: clang-format is not installed, so the format of the sources was not checked" >&2
	exit 77
fi
bad=0
for file in $(find src agent tools tests/unit -name '*.[ch]' | sort); do
	if ! clang-format --dry-run -Werror "$file" >/dev/null 2>&1; then
		echo "$file: wrong format; run: clang-format -i $file"
		bad=1
	fi
done
exit $bad
