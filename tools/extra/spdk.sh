#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# NVMe over RDMA: SPDK's target serves a disk in memory to SPDK's initiator, both over a daemon of
# this machine, and the initiator compares all that it reads. SPDK is built from a source tree of
# the user's, because no distribution packages it. --help has the rest.
set -euo pipefail

ROOT="$(cd "$(dirname "$0")/../.." && pwd)"
readonly ROOT
readonly NQN=nqn.2026-11.example.rocade:disk
readonly ADDRESS=192.0.2.1
readonly UNTESTED=77

usage()
{
	cat <<-END
	Usage: tools/extra/spdk.sh [--linux] SOURCE [SECONDS]
	Builds SPDK in SOURCE, a source tree with its submodules dpdk and isa-l
	(git clone --recurse-submodules https://github.com/spdk/spdk), unless it is built, and lets
	bdevperf write, read and compare for SECONDS (5, at most 3600). ROCADE_BUILD names Rocade's
	build directory (build).

	--linux    instead runs SPDK's target against the nvme-rdma of Linux, and its initiator against
	           nvmet-rdma, in a virtual machine without KVM (test/interop/nvme.py, as root). SPDK
	           must be built in SOURCE already. ROCADE_CACHE names the folder for Debian's kernel
	           (interop-cache in the build directory). ROCADE_TEST_LONG=1 moves more data.

	Exit status: 0 if all data was right; 1 if not, or SPDK could not be built; 2 for wrong
	arguments; $UNTESTED if there is no source tree (--linux: in which SPDK is built), or no
	virtual machine can run here: NVMe over RDMA is then untested.
	END
}

usage_fail()
{
	echo "spdk.sh: $1; --help has the arguments" >&2
	exit 2
}

fail()
{
	echo "spdk.sh: $1" >&2
	exit 1
}

spdk_build()
{
	local source="$1"

	if [ -x "$source/build/bin/nvmf_tgt" ] && [ -x "$source/build/examples/bdevperf" ]; then
		return
	fi
	(
		cd "$source"
		# Without ISA-L's cryptography: NASM of Debian 12 (2.16.01) does not come to an end with it.
		[ -e mk/config.mk ] || PATH=/usr/bin:$PATH ./configure --with-rdma --without-vhost \
			--without-virtio --without-vfio-user --without-crypto --without-fio \
			--without-ublk --without-uring --without-nvme-cuse --without-fsdev \
			--disable-unit-tests --disable-tests
		PATH=/usr/bin:$PATH make -j"$(nproc)" CONFIG_ISAL_CRYPTO=n
	) >"$scratch/build.log" 2>&1 || {
		tail -n 20 "$scratch/build.log" >&2
		fail "SPDK could not be built in $source"
	}
}

target_config()
{
	cat <<-END
	{"subsystems": [{"subsystem": "bdev", "config": [
	  {"method": "bdev_malloc_create",
	   "params": {"name": "Malloc0", "num_blocks": 65536, "block_size": 512}}]},
	 {"subsystem": "nvmf", "config": [
	  {"method": "nvmf_create_transport", "params": {"trtype": "RDMA"}},
	  {"method": "nvmf_create_subsystem",
	   "params": {"nqn": "$NQN", "allow_any_host": true, "serial_number": "ROCADE1"}},
	  {"method": "nvmf_subsystem_add_ns",
	   "params": {"nqn": "$NQN", "namespace": {"bdev_name": "Malloc0"}}},
	  {"method": "nvmf_subsystem_add_listener",
	   "params": {"nqn": "$NQN", "listen_address": {"trtype": "RDMA", "adrfam": "IPv4",
	              "traddr": "$ADDRESS", "trsvcid": "4420"}}}]}]}
	END
}

initiator_config()
{
	cat <<-END
	{"subsystems": [{"subsystem": "bdev", "config": [
	  {"method": "bdev_nvme_attach_controller",
	   "params": {"name": "Nvme0", "trtype": "RDMA", "adrfam": "IPv4", "traddr": "$ADDRESS",
	              "trsvcid": "4420", "subnqn": "$NQN"}}]}]}
	END
}

# Waits up to a minute for a line in a file.
await()
{
	for _ in $(seq 600); do
		grep -q "$1" "$2" 2>/dev/null && return
		sleep 0.1
	done
	cat "$2" >&2
	fail "no line '$1' within a minute"
}

# Bytes of the packets that the clients have sent, through the daemon and by their pairs.
moved()
{
	"$build/app/status/rocade-status" --json |
		python3 -c 'import json, sys
print(sum(c["tx_bytes"] + c["pair_bytes"] for c in json.load(sys.stdin)["clients"]))'
}

# Runs NVMe over RDMA against Linux in a virtual machine.
against_linux()
{
	export ROCADE_SOURCE="$ROOT" ROCADE_BUILD="$build"
	export ROCADE_CACHE="${ROCADE_CACHE:-$build/interop-cache}"
	"$ROOT/test/interop/nvme.py" "$source"
}

children=()
end()
{
	local pid

	for pid in "${children[@]}"; do
		kill "$pid" 2>/dev/null || true
	done
	wait
	rm -rf "$scratch"
}

linux=no
case "${1:-}" in
--help)
	usage
	exit 0
	;;
--linux)
	linux=yes
	shift
	;;
-*)
	usage_fail "unknown option '$1'"
	;;
esac
[ $# -le 2 ] || usage_fail "more than two arguments"
[ "$linux" = no ] || [ $# -le 1 ] || usage_fail "--linux takes no SECONDS"
if [ $# -eq 0 ] || [ ! -e "$1/include/spdk/nvmf.h" ]; then
	echo "spdk.sh: '${1:-}' is no source tree of SPDK: NVMe over RDMA is untested"
	exit "$UNTESTED"
fi
seconds="${2:-5}"
if ! [[ "$seconds" =~ ^[1-9][0-9]{0,3}$ ]] || [ "$seconds" -gt 3600 ]; then
	usage_fail "invalid SECONDS '$seconds': expected 1 to 3600"
fi
for part in dpdk/meson.build isa-l/autogen.sh; do
	[ -e "$1/$part" ] || fail "$1/$part is missing: git submodule update --init"
done
source="$(cd "$1" && pwd)"
build="$(cd "${ROCADE_BUILD:-$ROOT/build}" && pwd)" ||
	usage_fail "ROCADE_BUILD is no build directory of Rocade"
if [ "$linux" = yes ]; then
	against_linux
	exit
fi
scratch="$(mktemp -d)"
trap end EXIT
spdk_build "$source"

export ROCADE_SOCKET="$scratch/rocade.sock"
run=("$build/app/run/rocade-run" --library "$build/drivers/librocade-verbs.so")
"$build/app/rocaded/rocaded" --local --address "$ADDRESS/24" &
children+=($!)
for _ in $(seq 100); do
	[ ! -S "$ROCADE_SOCKET" ] || break
	sleep 0.1
done
target_config >"$scratch/target.json"
initiator_config >"$scratch/initiator.json"
"${run[@]}" "$source/build/bin/nvmf_tgt" -r "$scratch/target.sock" -m 0x1 --no-huge -s 512 \
	--json "$scratch/target.json" >"$scratch/target.log" 2>&1 &
children+=($!)
await "NVMe/RDMA Target Listening" "$scratch/target.log"
timeout $((seconds + 120)) "${run[@]}" "$source/build/examples/bdevperf" \
	-r "$scratch/initiator.sock" -m 0x2 --no-huge -s 512 --json "$scratch/initiator.json" \
	-q 16 -o 4096 -w verify -t "$seconds" >"$scratch/initiator.log" 2>&1 || {
	cat "$scratch/target.log" "$scratch/initiator.log" >&2
	fail "bdevperf has failed"
}
cat "$scratch/initiator.log"
bytes="$(moved)"
[ "$bytes" -gt 1000000 ] || fail "target and initiator have sent only $bytes bytes"
echo "spdk.sh: passed, the target has sent $bytes bytes"
