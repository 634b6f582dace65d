#!/bin/sh
# SPDX-License-Identifier: MIT
# Fails when a source file includes a header of a layer above or beside its own.
# src/LAYERS lists the layers, lowest first; directories on one line are siblings.
# usage: check-layers.sh SRCDIR
# Tools stand on base alone; the doctor asks settings, Redis and clusters by the server's own code.
cd "${1:-${srcdir:-.}}/src" || exit 1
if [ -d ../tools ] && find ../tools -name '*.[ch]' -exec grep -Hn '^#include "[a-z_]*/' {} + |
	grep -v '#include "\(base\|orchardctl\)/' | grep -v '^[^:]*/doctor/.*#include "\(conf\|redis\|kube\)/'; then
	echo "forbidden: tools include base and their own headers only, the doctor conf, redis and kube too"
	exit 1
fi
find . -name '*.[ch]' -exec grep -Hn '^#include "[a-z_]*/' {} + | awk '
	BEGIN {
		while ((getline line < "LAYERS") > 0) {
			level++
			count = split(line, names, " ")
			for (i = 1; i <= count; i++)
				rank[names[i]] = level
		}
	}
	{
		split($0, part, /[\/:]/)
		from = part[2]
		split($0, quoted, "\"")
		split(quoted[2], path, "/")
		to = path[1]
	}
	from ~ /\.[ch]$/ || from == to { next }	# main.c sees everything
	!(from in rank) { print "not in LAYERS: " $0; bad = 1; next }
	!(to in rank) || rank[to] >= rank[from] { print "forbidden: " $0; bad = 1 }
	END { exit bad }'
