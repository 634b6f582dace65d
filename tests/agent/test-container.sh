#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs the tests that drive the real agent; python3 is needed only here (77: skipped).
python=/usr/bin/python3
[ -x "$python" ] || python=$(command -v python3) || exit 77
PYTHONDONTWRITEBYTECODE=1 exec "$python" "${srcdir:-.}/tests/agent/test_container.py" "${builddir:-.}/agent/orchard-agent" "$@"
