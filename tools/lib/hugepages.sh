# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Sourced: hugepages_set N makes sure that N hugepages of 2 MiB are free, if the machine has three
# times that to spare; hugepages_restore gives back what that took.
pages_file=/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages
pages_before=

hugepages_set() {
	local want=$1 free available
	[ -w "$pages_file" ] || return 1
	free=$(cat "${pages_file%/*}/free_hugepages")
	[ "$free" -lt "$want" ] || return 0
	available=$(awk '/^MemAvailable:/ { print int($2 / 2048) }' /proc/meminfo)
	[ "$available" -gt $((3 * want)) ] || return 1
	pages_before=$(cat "$pages_file")
	echo $((pages_before + want - free)) >"$pages_file"
	[ "$(cat "${pages_file%/*}/free_hugepages")" -ge "$want" ] && return 0
	hugepages_restore
	return 1
}

hugepages_restore() {
	[ -n "$pages_before" ] || return 0
	echo "$pages_before" >"$pages_file"
	pages_before=
}
