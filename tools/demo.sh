#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Demonstrates Rocade: installs missing packages, builds, runs three set-ups, prints a table.
set -u -o pipefail

usage() {
	cat <<'EOT'
Usage: tools/demo.sh [--quick] [--part a|b|c]... [--capture FILE] [--json FILE] [--build DIR]

Installs the Debian packages that are missing, builds Rocade in build-demo/, and runs

  a  two hosts in two network namespaces, a net_tap port each, joined by a bridge: 8 QPs send into
     one shared receive queue, with 1 % loss in the second half
  b  two processes over net_memif, a core each, for speed
  c  one process with two ports inside it

and verifies every byte that arrives. Parts a and b need root: without root only part c runs.
Namespaces, mounts and hugepages are restored at the end, also after Ctrl-C.

  --part PART     run only this part; may be repeated
  --quick         run each part for a few seconds
  --capture FILE  write the frames of part a, at most 100,000, to a pcap file (needs tshark)
  --json FILE     write the numbers of the table, and the rate of each second, as JSON
  --build DIR     use the programs of this build directory; install and build nothing
  -h, --help      print this text

The last line is PASS or FAIL. Exit status: 0 PASS, 1 FAIL, 2 wrong option, 3 cannot install, build
or set up, 130 interrupted.
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
		[ $# -ge 2 ] || wrong "$1 requires a value"
		case $1 in
		--part)
			case $2 in
			a | b | c) parts=$parts$2 ;;
			*) wrong "invalid value '$2' for --part: expected a, b or c" ;;
			esac
			;;
		--build)
			build=$(cd "$2" 2>/dev/null && pwd) ||
				wrong "invalid value '$2' for --build: expected a directory"
			;;
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

session_begin

if [ -z "$build" ]; then
	run tools/install-deps.sh --build || die "missing packages, see above"
	build_program build-demo app/testpmd/rocade-testpmd
fi
[ -x "$build/app/testpmd/rocade-testpmd" ] || die "no app/testpmd/rocade-testpmd in $build"

alone=
if [ "$(id -u)" != 0 ]; then
	alone="Not root"
elif ! can_isolate; then
	alone="Cannot create namespaces"
fi
if [ -n "$alone" ]; then
	case ${parts:-c} in
	*c*) ;;
	*) die "$alone: part ${parts:0:1} cannot run" ;;
	esac
	echo "$alone: running part c alone. Parts a and b (two hosts, two processes) need root."
	parts=c
fi
: "${parts:=abc}"

start=run
if [[ $parts = *[ab]* ]]; then
	start=run_isolated
	# Two processes, 256 MiB each.
	if hugepages_set 272 4; then
		options+=(--hugepages)
	else
		echo "Too little memory for hugepages: running without them."
	fi
fi
"$start" tools/demo/demo.py --build "$build" --scratch "$scratch" --parts "$parts" "${options[@]}"
