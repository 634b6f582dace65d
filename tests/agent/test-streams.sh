#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs the tests that drive the real agent's streams; python3 is needed only here (77: skipped).
python=/usr/bin/python3
[ -x "$python" ] || python=$(command -v python3) || exit 77
PYTHONDONTWRITEBYTECODE=1 exec "$python" "${srcdir:-.}/tests/agent/test_streams.py" "${builddir:-.}/agent/orchard-agent" "$@"
