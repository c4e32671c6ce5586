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

die() {
	echo "demo.sh: $*" >&2
	exit 3
}

wrong() {
	echo "demo.sh: $*; --help lists what there is" >&2
	exit 2
}

top=$(cd "$(dirname "$0")/.." && pwd)
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

# The tools of the packages that are installed below, before others of their names.
export PATH="/usr/sbin:/usr/bin:/sbin:/bin:$PATH"
export PYTHONDONTWRITEBYTECODE=1
pages_file=/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages
pages_before=
child=
child_signal=TERM
scratch=$(mktemp -d) || die "no temporary directory"
# Whatever is started inherits this lock: it is free when all of them are gone.
exec 9>"$scratch/alive"
flock 9

restore() {
	trap '' INT TERM HUP
	if [ -n "$child" ]; then
		kill -s "$child_signal" "$child" 2>/dev/null
		wait "$child" 2>/dev/null
		child=
	fi
	exec 9>&-
	flock --timeout 10 "$scratch/alive" true
	if [ -n "$pages_before" ]; then
		echo "$pages_before" >"$pages_file"
		pages_before=
	fi
	rm -rf "$scratch"
}

interrupted() {
	trap '' INT TERM HUP
	echo >&2
	echo "demo.sh: interrupted; putting everything back" >&2
	exit 130
}
trap restore EXIT
trap interrupted INT TERM HUP

# In the background, so that a signal is handled at once and not after the command. Commands
# started that way ignore SIGINT, and so would what they start: env gives it back.
run() {
	env --default-signal=INT,QUIT "$@" &
	child=$!
	wait "$child"
	local status=$?
	child=
	return "$status"
}

build_programs() {
	build=$top/build-demo
	if ! mkdir -p "$build" 2>/dev/null || [ ! -w "$build" ]; then
		build=$scratch/build
	fi
	echo "Building in ${build/#"$top"\//} ..."
	if [ ! -f "$build/build.ninja" ]; then
		run meson setup --buildtype=release -Dtests=false "$build" "$top" \
			>"$scratch/build.log" 2>&1 ||
			{
				tail -n 20 "$scratch/build.log" >&2
				die "meson setup failed"
			}
	fi
	run ninja -C "$build" app/testpmd/rocade-testpmd >"$scratch/build.log" 2>&1 || {
		tail -n 20 "$scratch/build.log" >&2
		die "the build failed"
	}
}

# Two processes of 256 MiB each, if the machine has four times that to spare.
hugepages_set() {
	local want=272 free available
	[ -w "$pages_file" ] || return 1
	free=$(cat "${pages_file%/*}/free_hugepages")
	[ "$free" -lt "$want" ] || return 0
	available=$(awk '/^MemAvailable:/ { print int($2 / 2048) }' /proc/meminfo)
	[ "$available" -gt $((4 * want)) ] || return 1
	pages_before=$(cat "$pages_file")
	echo $((pages_before + want - free)) >"$pages_file"
	[ "$(cat "${pages_file%/*}/free_hugepages")" -ge "$want" ] && return 0
	echo "$pages_before" >"$pages_file"
	pages_before=
	return 1
}

if [ -z "$build" ]; then
	run tools/install-deps.sh --build || die "the packages above are needed"
	build_programs
fi
[ -x "$build/app/testpmd/rocade-testpmd" ] || die "no app/testpmd/rocade-testpmd in $build"

# Namespaces of its own (network, mounts, processes): what it sets up ends with it, even when
# it is killed.
isolate=(unshare --mount --net --pid --fork --kill-child --mount-proc)
if [ "$(id -u)" != 0 ]; then
	alone="Not root"
elif ! "${isolate[@]}" true 2>/dev/null; then
	alone="No namespaces can be made here"
else
	alone=
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

if [[ $parts = *[ab]* ]]; then
	if hugepages_set; then
		options+=(--hugepages)
	else
		echo "Too little memory for hugepages: without them."
	fi
	isolate+=(tools/lib/isolated.sh)
	child_signal=KILL # the namespaces end with their first process
else
	isolate=()
fi
run "${isolate[@]}" tools/demo/demo.py --build "$build" --scratch "$scratch" --parts "$parts" \
	"${options[@]}"
