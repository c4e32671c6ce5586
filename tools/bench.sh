#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Measures Rocade beside the limit of its port and beside what one would use otherwise.
set -u -o pipefail

usage() {
	cat <<'EOT'
Usage: tools/bench.sh [--quick] [--only NAME]... [--json FILE] [--svg DIR]
                      [--build DIR]

Installs the Debian packages that are missing, builds Rocade in build-bench/, and measures in one
run, round by round in turn, on cores 0 and 1: dpdk-testpmd and a ping-pong of raw frames over
net_memif (the limit), RDMA by Rocade over net_memif, TCP over loopback, UCX over TCP. Prints
ratios; docs/perf.md says how they come about. Needs root, two cores and an idle machine; at the
most 30 minutes. Namespaces, mounts and hugepages are afterwards as they were, also after Ctrl-C.

  --quick      short windows and fewer points: 4 minutes
  --only NAME  of the measurements (tools/bench/plan.py) those that begin like this
  --json FILE  the numbers (build/bench.json)
  --svg DIR    where the pictures of docs/perf.md are drawn (build/bench)
  --build DIR  take the programs of this build directory: install and build nothing, and do
               not say where the cycles go
  -h, --help

Exit status: 0 all was measured, 1 something was not, 2 wrong option, 3 could not be installed,
built or set up, 130 interrupted.
EOT
}

top=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=tools/lib/session.sh
. "$top/tools/lib/session.sh"
build=
json=$top/build/bench.json
svg=$top/build/bench
options=()
while [ $# -gt 0 ]; do
	case $1 in
	--quick) options+=(--quick) ;;
	--only | --json | --svg | --build)
		[ $# -ge 2 ] || wrong "$1 needs a value"
		case $1 in
		--build) build=$(cd "$2" 2>/dev/null && pwd) || wrong "no directory '$2'" ;;
		--only) options+=(--only "$2") ;;
		--json) json=$(realpath -m -- "$2") ;;
		--svg) svg=$(realpath -m -- "$2") ;;
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

[ "$(id -u)" = 0 ] || die "needs root: for hugepages and namespaces"
[ "$(nproc)" -ge 2 ] || die "needs two cores"
if [ -z "$build" ]; then
	run tools/install-deps.sh --bench || die "the packages above are needed"
	build_program build-bench/cycles app/perf/rocade-perf -Dcycles=true
	options+=(--cycles "$build")
	build_program build-bench/plain all
fi
[ -x "$build/app/perf/rocade-perf" ] || die "no app/perf/rocade-perf in $build"
can_isolate || die "no namespaces can be made here"
hugepages_set 1024 3 || die "too little memory: 2 GiB of hugepages are needed"
mkdir -p "$(dirname "$json")" || die "no place for $json"
run_isolated tools/bench/bench.py --build "$build" --scratch "$scratch" --json "$json" --svg "$svg" \
	"${options[@]}"
