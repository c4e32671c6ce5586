#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Shows Rocade at work: installs what is missing, builds, runs three set-ups, prints a table.
set -u -o pipefail

usage() {
	cat <<'EOT'
Usage: tools/demo.sh [--quick] [--part a|b|c]... [--capture FILE] [--json FILE] [--build DIR]

Installs the Debian packages that are missing, builds Rocade in build-demo/, and runs

  a  two hosts in two network namespaces, a net_tap port each, joined by a bridge: 8 QPs into
     one shared receive queue, and 1 % loss from half-way on
  b  two processes over net_memif, a core each, for speed
  c  one process with two ports inside it

and checks every byte that arrives. Parts a and b need root; without, c runs alone. Namespaces,
mounts and hugepages are afterwards as they were, also after Ctrl-C.

  --part PART     only this part (again for more)
  --quick         a few seconds a part
  --capture FILE  the frames of part a, at the most 100,000, as a pcap file (needs tshark)
  --json FILE     the table's numbers, and rates by second, as JSON
  --build DIR     take the programs of this build directory: install and build nothing
  -h, --help

The last line is PASS or FAIL. Exit status: 0 PASS, 1 FAIL, 2 wrong option, 3 could not be
installed, built or set up, 130 interrupted.
EOT
}

top=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=tools/lib/session.sh
. "$top/tools/lib/session.sh"
build=
parts=
options=()
while [ $# -gt 0 ]; do
	case $1 in
	--quick) options+=(--quick) ;;
	--part | --capture | --json | --build)
		[ $# -ge 2 ] || wrong "$1 needs a value"
		case $1 in
		--part)
			case $2 in
			a | b | c) parts=$parts$2 ;;
			*) wrong "there is no part '$2'" ;;
			esac
			;;
		--build) build=$(cd "$2" 2>/dev/null && pwd) || wrong "no directory '$2'" ;;
		*) options+=("$1" "$(realpath -m -- "$2")") ;;
		esac
		shift
		;;
	-h | --help)
		usage
		exit 0
		;;
	*) wrong "unknown option '$1'" ;;
	esac
	shift
done
cd "$top" || exit 3

export PYTHONDONTWRITEBYTECODE=1
session_begin

if [ -z "$build" ]; then
	run tools/install-deps.sh --build || die "the packages above are needed"
	build_program build-demo app/testpmd/rocade-testpmd
fi
[ -x "$build/app/testpmd/rocade-testpmd" ] || die "no app/testpmd/rocade-testpmd in $build"

alone=
if [ "$(id -u)" != 0 ]; then
	alone="Not root"
elif ! can_isolate; then
	alone="No namespaces can be made here"
fi
if [ -n "$alone" ]; then
	case ${parts:-c} in
	*c*) ;;
	*) die "$alone: part ${parts:0:1} cannot run" ;;
	esac
	echo "$alone: part c alone; parts a and b (two hosts, two processes) need root."
	parts=c
fi
: "${parts:=abc}"

start=run
if [[ $parts = *[ab]* ]]; then
	start=run_isolated
	# Two processes of 256 MiB each.
	if hugepages_set 272 4; then
		options+=(--hugepages)
	else
		echo "Too little memory for hugepages: without them."
	fi
fi
"$start" tools/demo/demo.py --build "$build" --scratch "$scratch" --parts "$parts" "${options[@]}"
