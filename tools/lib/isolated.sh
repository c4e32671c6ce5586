#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# isolated.sh COMMAND...: runs as the first process of new mount, network and PID namespaces (see
# run_isolated in session.sh). Sets up a loopback interface, /run, /dev/shm and a hugetlbfs in them.
set -eu

mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs /run
# A program removes what it takes for left by daemons that have ended: their sockets are in another /run.
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
if [ "$(cat /proc/sys/vm/nr_hugepages)" -gt 0 ]; then
	mkdir /run/hugepages
	mount -t hugetlbfs hugetlbfs /run/hugepages
fi
ip link set lo up

# Not exec: the first process of a PID namespace would ignore the signals of a timeout.
status=0
"$@" || status=$?
exit "$status"
