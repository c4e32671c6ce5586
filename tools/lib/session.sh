# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Sourced by demo.sh, bench.sh, field.sh and test.sh. Processes that they start end with them, and the state
# of the machine is restored, also after Ctrl-C. Needs $top. Call session_begin first.
# shellcheck disable=SC2154 # the sourcing script sets top

# Prefer the tools of the packages that install-deps.sh installs to others of the same name.
export PATH="/usr/sbin:/usr/bin:/sbin:/bin:$PATH"
started_as=${0##*/}
pages_file=/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages
pages_before=
child=
child_signal=TERM
busy=()
workers=()
restores='namespaces, mounts and hugepages'
scratch=
isolate=(unshare --mount --net --pid --fork --kill-child --mount-proc)

die() {
	echo "$started_as: $*" >&2
	exit 3
}

wrong() {
	echo "$started_as: $* (see --help)" >&2
	exit 2
}

session_end() {
	trap '' INT TERM HUP
	if [ -n "$child" ]; then
		kill -s "$child_signal" "$child" 2>/dev/null
		wait "$child" 2>/dev/null
		child=
	fi
	[ ${#busy[@]} = 0 ] || kill "${busy[@]}"
	[ ${#workers[@]} = 0 ] || kill "${workers[@]}" 2>/dev/null
	exec 7>&-
	flock --timeout 10 "$scratch/alive" true
	hugepages_restore
	rm -rf "$scratch"
}

session_interrupted() {
	trap '' INT TERM HUP
	{
		echo
		echo "$started_as: interrupted; restoring $restores"
	} >&8 # our own stderr, not that of a redirected command
	exit 130
}

session_begin() {
	export PYTHONDONTWRITEBYTECODE=1
	scratch=$(mktemp -d) || die "no temporary directory"
	# Started processes inherit this lock. It is released when the last of them has ended.
	exec 7>"$scratch/alive" 8>&2
	flock 7
	trap session_end EXIT
	trap session_interrupted INT TERM HUP
}

# Runs a command in the background, so that the shell handles a signal at once and not after the
# command. The shell makes background commands ignore SIGINT; env restores the default. When the shell
# is killed, which runs no trap, the kernel sends the signal that session_end would have sent.
run() {
	setpriv --pdeathsig "$child_signal" env --default-signal=INT,QUIT "$@" 8>&- 9>&- &
	child=$!
	wait "$child"
	local status=$?
	child=
	return "$status"
}

# worker COMMAND...: runs a function in the background. It ends with the session, and then ends what it has
# started with `run`. A signal may come before `run` has set child, so it asks the shell for its jobs.
worker() {
	(
		# shellcheck disable=SC2046 # a word for each job
		trap 'kill -s "$child_signal" $(jobs -rp) 2>/dev/null; exit 143' TERM HUP
		"$@"
	) &
	workers+=($!)
}

# workers_wait: until all have ended
workers_wait() {
	wait "${workers[@]}"
	workers=()
}

# busy_loops N: starts N busy loops, which end with the session. Each has a session of its own, so
# that a kernel that shares the CPU among sessions counts each as one.
busy_loops() {
	while [ "${#busy[@]}" -lt "$1" ]; do
		setsid bash -c 'while :; do :; done' 7>&- 8>&- 9>&- &
		busy+=($!)
	done
}

can_isolate() {
	[ "$(id -u)" = 0 ] && "${isolate[@]}" true 2>/dev/null
}

# As root the command runs in new network, mount and PID namespaces with a new /run. All that it
# sets up ends with it, even when it is killed.
run_isolated() {
	child_signal=KILL # the namespaces end with their first process
	run "${isolate[@]}" tools/lib/isolated.sh "$@"
	local status=$?
	child_signal=TERM
	return "$status"
}

# logged WHAT COMMAND...: shows the end of the command's output when it fails
logged() {
	local what=$1
	shift
	run "$@" >"$scratch/build.log" 2>&1 && return 0
	tail -n 20 "$scratch/build.log" >&2
	die "$what failed"
}

# build_program DIR TARGET [OPTION]...: sets build. DIR is in the tree, or in a temporary folder if
# the tree is read-only.
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

# hugepages_set N SPARE: makes sure that N hugepages of 2 MiB are free if the machine has SPARE
# times that of free memory.
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
	local have
	[ -n "$pages_before" ] || return 0
	# Pages in use become surplus pages, which the kernel frees with their last user, a little after its
	# last process has ended. A page that becomes free while the kernel shrinks the pool may stay as a
	# surplus page for ever: the pool takes those back when it is set to what it has, and shrinks anew.
	for _ in {1..100}; do
		echo "$pages_before" >"$pages_file"
		have=$(cat "$pages_file")
		[ "$have" -gt "$pages_before" ] || break
		sleep 0.1
		echo "$have" >"$pages_file"
	done
	pages_before=
}
