# SPDX-License-Identifier: MIT
# What the checks with foreign programs share; sourced with the build directory as first argument.
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$(cd "${1:?usage: $0 BUILD-DIRECTORY}" && pwd)
venv=$build/venv-foreign

[ "$(id -u)" = 0 ] || { echo "$(basename "$0"): SKIPPED: needs root, to make sandboxes" >&2; exit 77; }
getent passwd orchard >/dev/null || useradd --system --home-dir /nonexistent --shell /usr/sbin/nologin orchard

install_packages() { # PACKAGE...: those that are not here
	local name missing=()
	for name in "$@"; do
		dpkg-query -W -f '${db:Status-Status}\n' "$name" 2>/dev/null | grep -qx installed || missing+=("$name")
	done
	[ ${#missing[@]} -gt 0 ] || return 0
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

prepare_venv() { # PACKAGE...
	[ -x "$venv/bin/pip" ] || python3 -m venv "$venv"
	"$venv/bin/pip" install -q -r "$top/tests/integration/requirements.txt" "$@"
}

run_tests() { # FILE [PYTEST-ARGUMENT...]
	local file=$1
	shift
	ORCHARD_BUILD_DIR=$build "$venv/bin/pytest" -q -p no:cacheprovider --timeout=900 "$top/tests/integration/$file" "$@"
}
