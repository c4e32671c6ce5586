#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Installs the Debian packages that building, testing and the demo need.
set -eu

usage() {
	cat <<'EOF'
Usage: tools/install-deps.sh [--build | --bench | --long | --packages] [--list]

Installs the missing packages with apt-get (Debian 12). Prints nothing if none is missing.

  --build     only the packages that building and the demo need, not those of the tests
  --bench     the packages that building and tools/bench.sh need
  --long      also the packages that only tools/test.sh --long needs: those of Ceph
  --packages  the packages that tools/package.sh needs
  --list      print the packages, install nothing
  -h, --help  print this text

Exit status: 0 all packages are installed, 1 a package is missing and cannot be installed,
2 wrong option.
EOF
}

build='gcc libc6-dev meson ninja-build pkg-config dpdk libdpdk-dev libibverbs-dev libisal-dev
libjansson-dev librdmacm-dev libseccomp-dev zlib1g-dev python3 iproute2 iputils-ping'
tests='apt-utils bpftrace busybox-static clang clang-format dapl2-utils dpdk-dev dpkg-dev fio g++ gcc-aarch64-linux-gnu
gcovr gpg hpcc ibverbs-utils infiniband-diags kmod libblas-dev libbpf-dev libclang-rt-dev libcmocka-dev
libfabric-bin libgloo-dev libmpich-dev libopenmpi-dev librdmacm1 libsystemd-dev lintian mandoc mpich nftables
open-iscsi openmpi-bin perftest prometheus prometheus-node-exporter
python3-pyverbs python3-scapy python3-yaml
qemu-block-extra qemu-system-x86 qemu-user qemu-utils qperf rdmacm-utils redis-server shellcheck
strace systemd tcpdump tgt tshark ucx-utils valgrind'
long='ceph-common ceph-mgr ceph-mon ceph-osd'
bench='busybox-static dpdk-dev ibverbs-utils kmod libopenmpi-dev openmpi-bin perftest qemu-system-x86
qperf rdmacm-utils sockperf ucx-utils'

chroots='autopkgtest buildah debootstrap python3 python3-yaml'

packages="$build $tests"
list=no
for arg in "$@"; do
	case $arg in
	--build) packages=$build ;;
	--bench) packages="$build $bench" ;;
	--long) packages="$build $tests $long" ;;
	--packages) packages=$chroots ;;
	--list) list=yes ;;
	-h | --help)
		usage
		exit 0
		;;
	*)
		echo "install-deps.sh: unknown option '$arg' (see --help)" >&2
		exit 2
		;;
	esac
done

if [ "$list" = yes ]; then
	for package in $packages; do
		echo "$package"
	done
	exit 0
fi
if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
	# shellcheck disable=SC2086 # unquoted: the packages on one line
	echo "install-deps.sh: no apt-get: install the equivalents of:" $packages >&2
	exit 1
fi

find_missing() {
	missing=
	for package in $packages; do
		# shellcheck disable=SC2016 # dpkg-query's own ${}
		status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) || :
		[ "$status" = installed ] || missing="$missing $package"
	done
}

find_missing
[ -n "$missing" ] || exit 0
if [ "$(id -u)" != 0 ]; then
	echo "install-deps.sh: needs root to install:$missing" >&2
	exit 1
fi

echo "Installing$missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086 # a list
if ! { apt-get update && apt-get install -y --no-install-recommends $missing; } \
	</dev/null >"$log" 2>&1; then
	tail -n 20 "$log" >&2
	echo "install-deps.sh: apt-get failed" >&2
	exit 1
fi
