#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The field kit: measures Rocade between two or more hosts, and writes a report that can be sent in.
set -u -o pipefail

usage() {
	cat <<'EOT'
Usage: tools/field.sh left  --control HOST:PORT PORT --addr ADDRESS/PREFIX --peer ADDRESS [OPTION]...
       tools/field.sh right --control HOST:PORT PORT --addr ADDRESS/PREFIX --peer ADDRESS [OPTION]...
       tools/field.sh left|right --control HOST:PORT PORT --addr ADDRESS/PREFIX --hosts LIST [OPTION]...

Measures Rocade between two hosts: start left on one and right on the other. Both check their host,
lend the NIC to DPDK, and run the same steps: path MTU, message rate, bandwidth, latency, loss, and
a pingpong with an RDMA device of the kernel where there is one. Every byte is verified. Left writes
field-left.json and field-left.md, a page. They contain no host name and no address.

With --hosts, three or more hosts: start left on the first of the list and right on each other one.
All send to the first, the first sends to all, and all send to all. Left writes field-hosts.json and
a page for each of these, with what was measured beside what a simulation of these hosts predicts.

  --control HOST:PORT     address of left on the ordinary network: left listens there, right
                          connects. Also uses the next port. This connection is not authenticated:
                          use a network that you trust
  --dev PCI               PORT: the NIC under test, such as 0000:3b:00.0
  --vdev ARGUMENTS        PORT: a virtual device of DPDK instead, such as net_af_packet0,iface=eth1
  --addr ADDRESS/PREFIX   address of this end on the network under test, unused by the kernel
  --peer ADDRESS          address of the other end, on the same network
  --hosts LIST            in place of --peer: addresses of all hosts, this one too, separated by
                          commas, 3 to 64; the same list on each host
  --bind [DRIVER]         lend --dev to DPDK by this driver (vfio-pci) for the run, and give it back
                          at the end. Refused if the host uses its interface: the default route, the
                          control connection, ssh, any route or address
  --path-mtu BYTES        largest path MTU to try: 1024, 2048 or 4096 (4096)
  --core N                core to poll on (the last one of the NIC's NUMA node)
  --patterns LIST         with --hosts: which of all-to-one,one-to-all,all-to-all (all three)
  --link-rate RATE        with --hosts, for the prediction: rate of a link in Mb/s, or with suffix g
                          in Gb/s (that of the fastest pair of hosts, measured alone)
  --switch-buffer KB      with --hosts, for the prediction: buffer of each port of the switch (1000)
  --rdma DEVICE           RDMA device of the kernel at this end (one in the network of --addr)
  --quick                 a second for each measurement and fewer of them. Left's choice holds
  --wait SECONDS          how long to wait for the other end (600)
  --out DIR               where left writes its two files (.)
  --build DIR             use the programs of this build directory; install and build nothing
  -h, --help              print this text

Needs root. Exit status: 0 all passed, 1 a measurement failed or the other end has gone, 2 wrong
option, 3 cannot set up, 130 interrupted. docs/field.md has more.
EOT
}

top=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=tools/lib/session.sh
. "$top/tools/lib/session.sh"
restores='the NIC and hugepages'
build=
nic=
hosts=
out=$PWD
options=()
while [ $# -gt 0 ]; do
	case $1 in
	--build=* | --out=*) # as field.py takes its options
		set -- "${1%%=*}" "${1#*=}" "${@:2}"
		continue
		;;
	--build | --out)
		[ $# -ge 2 ] || wrong "$1 requires a value"
		dir=$([ -n "$2" ] && cd "$2" 2>/dev/null && pwd) ||
			wrong "invalid value '$2' for $1: expected a directory"
		if [ "$1" = --build ]; then build=$dir; else out=$dir; fi
		shift
		;;
	-h | --help) usage && exit ;;
	*)
		case $1 in
		--dev | --dev=*) nic=yes ;;
		--hosts | --hosts=*) hosts=yes ;;
		esac
		options+=("$1")
		;;
	esac
	shift
done
cd "$top" || exit 3

session_begin
kit() {
	run python3 tools/field/field.py "${options[@]}" --out "$out" --scratch "$scratch" "$@"
}

# Wrong options are found before anything is installed or built.
kit --build "$top" --parse-only || exit
[ "$(id -u)" = 0 ] || die "needs root: DPDK ports do"
if [ -z "$build" ]; then
	run tools/install-deps.sh --build || die "missing packages, see above"
	build_program build-field all
	[ -z "$hosts" ] || logged "the build of the simulation" ninja -C "$build" test/fabric/fabric
fi
[ -x "$build/app/testpmd/rocade-testpmd" ] || die "no app/testpmd/rocade-testpmd in $build"
# 256 MiB for a program, and a few pages for its EAL.
[ -z "$nic" ] || hugepages_set 144 4 || echo "Too little memory for hugepages: running without them."
kit --build "$build"
