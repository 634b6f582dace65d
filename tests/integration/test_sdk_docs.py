"""Each example of the SDK's guide and README is a program that runs."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
GUIDE = (REPO / "docs" / "python-sdk.md").read_text()
EXAMPLES = re.findall(r"^## ([^\n]+)\n(?:(?!^## ).)*?^```python\n(.*?)^```", GUIDE, re.M | re.S)


@pytest.mark.parametrize(("title", "code"), EXAMPLES, ids=[title for title, _ in EXAMPLES])
def test_example_of_the_guide(server, title, code):
    assert code.count('"python:3.11-slim"') >= 1
    env = os.environ | {"PYTHONPATH": str(REPO / "sdk" / "python" / "src"), "SANDBOX_BASE_URL": server.url,
                        "SANDBOX_API_KEY": server.key}
    program = subprocess.run([sys.executable, "-c", code.replace('"python:3.11-slim"', repr(server.image))],
                             env=env, capture_output=True, text=True, timeout=120)
    assert program.returncode == 0, program.stderr
    assert "Warning" not in program.stderr
