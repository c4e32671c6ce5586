# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Sourced by demo.sh, bench.sh and test.sh: what they start ends with them, and the machine is
# afterwards as it was, also after Ctrl-C. Needs $top. session_begin comes before all else here.
# shellcheck disable=SC2154 # top is theirs

# The tools of the packages that install-deps.sh installs, before others of their names.
export PATH="/usr/sbin:/usr/bin:/sbin:/bin:$PATH"
started_as=${0##*/}
pages_file=/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages
pages_before=
child=
child_signal=TERM
scratch=
isolate=(unshare --mount --net --pid --fork --kill-child --mount-proc)

die() {
	echo "$started_as: $*" >&2
	exit 3
}

wrong() {
	echo "$started_as: $*; --help lists what there is" >&2
	exit 2
}

session_end() {
	trap '' INT TERM HUP
	if [ -n "$child" ]; then
		kill -s "$child_signal" "$child" 2>/dev/null
		wait "$child" 2>/dev/null
		child=
	fi
	exec 7>&-
	flock --timeout 10 "$scratch/alive" true
	hugepages_restore
	rm -rf "$scratch"
}

session_interrupted() {
	trap '' INT TERM HUP
	{
		echo
		echo "$started_as: interrupted; putting everything back"
	} >&8 # our own stderr, not that of a redirected command
	exit 130
}

session_begin() {
	scratch=$(mktemp -d) || die "no temporary directory"
	# Whatever is started inherits this lock: it is free when all of them are gone.
	exec 7>"$scratch/alive" 8>&2
	flock 7
	trap session_end EXIT
	trap session_interrupted INT TERM HUP
}

# In the background, so that a signal is handled at once and not after the command. Commands
# started that way ignore SIGINT, and so would what they start: env gives it back.
run() {
	env --default-signal=INT,QUIT "$@" 8>&- 9>&- &
	child=$!
	wait "$child"
	local status=$?
	child=
	return "$status"
}

can_isolate() {
	[ "$(id -u)" = 0 ] && "${isolate[@]}" true 2>/dev/null
}

# As root in namespaces of its own (network, mounts, processes, /run): what it sets up ends with
# it, even when it is killed.
run_isolated() {
	child_signal=KILL # the namespaces end with their first process
	run "${isolate[@]}" tools/lib/isolated.sh "$@"
	local status=$?
	child_signal=TERM
	return "$status"
}

# logged WHAT COMMAND...: the end of what it says is shown when it fails
logged() {
	local what=$1
	shift
	run "$@" >"$scratch/build.log" 2>&1 && return 0
	tail -n 20 "$scratch/build.log" >&2
	die "$what failed"
}

# build_program DIR TARGET [OPTION]...: sets build; DIR is in the tree, or elsewhere where that cannot be
# written.
build_program() {
	local target=$2
	build=$top/$1
	if ! mkdir -p "$build" 2>/dev/null || [ ! -w "$build" ]; then
		build=$scratch/$1
	fi
	shift 2
	echo "Building in ${build/#"$top"\//} ..."
	[ -f "$build/build.ninja" ] || logged "meson setup" \
		meson setup --buildtype=release -Dtests=false "$@" "$build" "$top"
	logged "the build" ninja -C "$build" "$target"
}

# hugepages_set N SPARE: makes sure that N hugepages of 2 MiB are free, if the machine has SPARE
# times that to spare.
hugepages_set() {
	local want=$1 free available
	[ -w "$pages_file" ] || return 1
	free=$(cat "${pages_file%/*}/free_hugepages")
	[ "$free" -lt "$want" ] || return 0
	available=$(awk '/^MemAvailable:/ { print int($2 / 2048) }' /proc/meminfo)
	[ "$available" -gt $(($2 * want)) ] || return 1
	: "${pages_before:=$(cat "$pages_file")}"
	echo $(($(cat "$pages_file") + want - free)) >"$pages_file"
	[ "$(cat "${pages_file%/*}/free_hugepages")" -ge "$want" ] && return 0
	hugepages_restore
	return 1
}

hugepages_restore() {
	[ -n "$pages_before" ] || return 0
	echo "$pages_before" >"$pages_file"
	pages_before=
}
