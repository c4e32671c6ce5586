#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Measures Rocade beside the limit of its port, TCP, and UCX over TCP; unchanged programs beside
# their neighbours; programs in a virtual machine beside rdma_rxe.
set -u -o pipefail

usage() {
	cat <<'EOT'
Usage: tools/bench.sh [--stage STAGE] [--quick] [--only NAME]... [--json FILE]
                      [--svg DIR] [--build DIR]

Installs missing Debian packages, builds Rocade in build-bench/, and measures in interleaved rounds
on cores 0 and 1: dpdk-testpmd and a ping-pong of raw frames over net_memif (the limit), Rocade
over net_memif, TCP over loopback, and UCX over TCP; with --only hosts two daemons joined by net_memif,
and by net_af_packet over a veth. Prints ratios; docs/perf.md explains the method.
Needs root, two cores and an idle machine. Takes at most 30 minutes. Restores namespaces, mounts
and hugepages at the end, also after Ctrl-C.

Stages:
  port         the above (default)
  neighbours   unchanged programs over rocaded --local: perftest's six between two processes, idle,
               beside two busy loops, on one core, four pairs at once, and with events; all-reduce
               beside Open MPI's own vader and tcp. At most 8 minutes, --quick 2
  guest        perftest over rdma_rxe and over Rocade in one virtual machine (QEMU), in turn, in
               two boots: at most 40 minutes, --quick 10. Needs x86-64 and Debian's kernel package,
               which it downloads

Options:
  --stage STAGE  port, neighbours or guest
  --quick      short windows and fewer points; stage port: 4 minutes
  --only NAME  only the measurements whose names begin with NAME (stage port: tools/bench/plan.py;
               neighbours: idle, busy, one core, four pairs, events, all-reduce, resends)
  --json FILE  write the numbers to FILE (default build/bench.json, or build/STAGE.json)
  --svg DIR    draw the pictures of docs/perf.md into DIR (default build/bench)
  --build DIR  use the programs of this build directory: install and build nothing, and do not
               count cycles by stage
  -h, --help

Exit status: 0 all measurements were taken, 1 one was not, 2 wrong option, 3 installation, build or
setup failed, 130 interrupted.
EOT
}

top=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=tools/lib/session.sh
. "$top/tools/lib/session.sh"
build=
stage=port
json=
svg=$top/build/bench
options=()
while [ $# -gt 0 ]; do
	case $1 in
	--quick) options+=(--quick) ;;
	--stage | --only | --json | --svg | --build)
		[ $# -ge 2 ] || wrong "$1 requires a value"
		case $1 in
		--stage) case $2 in
			port | neighbours | guest) stage=$2 ;;
			*) wrong "invalid value '$2' for --stage: expected port, neighbours or guest" ;;
			esac ;;
		--build) build=$(cd "$2" 2>/dev/null && pwd) ||
			wrong "invalid value '$2' for --build: expected a directory" ;;
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
: "${json:=$top/build/$([ "$stage" = port ] && echo bench || echo "$stage").json}"

session_begin

[ "$(id -u)" = 0 ] || die "needs root, for hugepages and namespaces"
[ "$(nproc)" -ge 2 ] || die "needs two cores; this machine has $(nproc)"
if [ -z "$build" ]; then
	run tools/install-deps.sh --bench || die "missing packages, see above"
	if [ "$stage" = port ]; then
		build_program build-bench/cycles app/perf/rocade-perf -Dcycles=true
		options+=(--cycles "$build")
	fi
	build_program build-bench/plain all
fi
[ -x "$build/app/perf/rocade-perf" ] || die "no app/perf/rocade-perf in $build"
can_isolate || die "cannot create namespaces (unshare fails)"
mkdir -p "$(dirname "$json")" || die "cannot create the directory of --json $json"
options+=(--build "$build" --scratch "$scratch" --json "$json")
case $stage in
port)
	hugepages_set 1024 3 || die "cannot get 2 GiB of hugepages: needs 6 GiB of free memory"
	run_isolated tools/bench/bench.py --svg "$svg" "${options[@]}"
	;;
neighbours) run_isolated tools/bench/neighbours.py "${options[@]}" ;;
guest)
	# Outside of the namespaces, which have no network.
	cache=${ROCADE_CACHE:-$top/build/interop-cache}
	run test/interop/kernel.py "$cache" || die "no kernel for the guest, see above"
	run_isolated tools/bench/in_guest.py --cache "$cache" "${options[@]}"
	;;
esac
