# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Sourced by tools/test.sh: the stages that run whole programs. Uses its variables, its check and
# run_logged, build and build_release of stages.sh, and the functions of session.sh.
# shellcheck disable=SC2034,SC2154 # test.sh sets and reads these variables

# Hugepages for the tests: a quarter of the free memory, at most 2 GiB for each of two programs, or fewer if
# the kernel has fewer.
e2e_hugepages() {
	local want
	[ -z "$pages_before" ] || return 0
	want=$(awk '/^MemAvailable:/ { n = int($2 / 4 / 2048); print (n > 2048 ? 2048 : n) }' \
		/proc/meminfo)
	until [ "$want" -eq 0 ] || hugepages_set "$want" 3; do
		want=$((want / 2))
	done
	[ -z "$pages_before" ] || echo "  $(cat "$pages_file") hugepages (before: $pages_before)"
}

# How many programs run at a time. Two together need less than 2 GiB of hugepages, and the cores: beside busy
# loops one runs alone, and in a long run, whose programs are sanitized or have more ends.
e2e_at_a_time() {
	local free
	free=$(cat "${pages_file%/*}/free_hugepages" 2>/dev/null || echo 0)
	if [ "$isolated" = yes ] && [ "$jobs" -gt 1 ] && [ "$loops" = 0 ] && [ "$long" = no ] &&
		[ "$free" -ge 1024 ]; then
		echo 2
	else
		echo 1
	fi
}

# e2e_program STAGE BUILD PROGRAM: runs it in namespaces, which end all that it leaves behind.
e2e_program() {
	local stage=$1 program=$3 status started=$SECONDS
	local name log limit took
	name=$(basename "$program")
	log=$out/log/$stage-$name
	# Every wait in the programs has a shorter limit of its own. A program that needs more than a
	# quarter of an hour on a busy machine has a line "# test.sh: limit_s 1800".
	limit=$(sed -n 's/^# test\.sh: limit_s \([0-9]*\)$/\1/p' "$program")
	[ "$long" = no ] || limit=5400 # soak.py runs for an hour
	: "${limit:=900}"
	rm -rf "${scratch:?}/$stage-$name"
	mkdir "$scratch/$stage-$name"
	export ROCADE_SOURCE=$top ROCADE_BUILD=$2 TMPDIR=$scratch/$stage-$name
	if [ "$isolated" = yes ]; then
		run_isolated timeout -k 10 "$limit" "$program" >"$log.tap" 2>"$log.err" </dev/null
	else
		# A signal that timeout gets before it has a handler ends timeout only. Then the kernel ends the program.
		run timeout -k 10 "$limit" setpriv --pdeathsig TERM "$program" >"$log.tap" 2>"$log.err" </dev/null
	fi
	status=$?
	unset TMPDIR
	took=$((SECONDS - started))
	[ "$status" != 124 ] || echo "test.sh: took longer than $limit s" >>"$log.err"
	{
		flock 6 # another program may end just now
		tools/lib/results.py tap "$stage" "$name" "$log.tap" "$status" test/skips "$results" ||
			tail -n 60 "$log.err" | cut -c 1-400 | sed 's/^/  | /'
		echo "  ($took s)"
	} 6>>"$scratch/e2e.lock"
}

# e2e_worker STAGE BUILD PROGRAM...: runs those that no other worker has begun, while the script runs.
e2e_worker() {
	local stage=$1 build=$2 program
	shift 2
	for program; do
		kill -0 $$ 2>/dev/null || return
		mkdir "$scratch/begun/${program##*/}" 2>/dev/null || continue
		e2e_program "$stage" "$build" "$program"
	done
}

# e2e_together WORKERS STAGE BUILD PROGRAM...: one worker, or a second one that begins with the last program.
# In the order of their names this runs those of rocade-testpmd, whose ends poll, beside others, which mostly
# wait. A program without a result has a failed case.
e2e_together() {
	local count=$1 stage=$2 build=$3 program first backwards=()
	shift 3
	first=$(($(wc -l <"$results") + 1))
	rm -rf "${scratch:?}/begun"
	mkdir "$scratch/begun"
	for program; do
		backwards=("$program" "${backwards[@]}")
	done
	worker e2e_worker "$stage" "$build" "$@"
	[ "$count" = 1 ] || worker e2e_worker "$stage" "$build" "${backwards[@]}"
	workers_wait
	for program; do
		grep -qF $'\t'"$stage"$'\t'"${program##*/}: " < <(tail -n "+$first" "$results") && continue
		printf 'failed\t%s\t%s: runs to its end\t\n' "$stage" "${program##*/}" >>"$results"
		echo "  FAILED ${program##*/}: runs to its end"
	done
}

# e2e STAGE BUILD
e2e() {
	local program count alone=() together=()
	local -A mine=()
	if [ "$turns" = yes ]; then
		while read -r program; do
			mine[$program]=yes
		done < <(tools/lib/turns.py "$top" e2e)
	fi
	isolated=no
	! can_isolate || isolated=yes
	e2e_hugepages
	count=$(e2e_at_a_time)
	# hpcc.py then builds this source, and has no network.
	export ROCADE_CACHE=$out/cache
	[ "$long" = no ] || run_logged "$1" test/e2e/lib/hpcc_source.py "$ROCADE_CACHE"
	for program in "$top"/test/e2e/*.sh "$top"/test/e2e/*.py; do
		[ -e "$program" ] || continue # a pattern without a file
		[ "$turns" = no ] || [ -n "${mine[${program##*/}]:-}" ] || continue
		# A program that cannot have another one beside it has a line "# test.sh: alone REASON".
		if grep -q '^# test\.sh: alone ' "$program"; then
			alone+=("$program")
		else
			together+=("$program")
		fi
	done
	for program in "${alone[@]}"; do
		e2e_program "$1" "$2" "$program"
	done
	e2e_together "$count" "$1" "$2" "${together[@]}"
	check "$1" "there are programs" [ $((${#alone[@]} + ${#together[@]})) != 0 ]
}

stage_e2e() {
	build_release e2e end-to-end && e2e e2e "$out/release"
}

# The kernel package is fetched here because the test has no network.
stage_interop() {
	build_release interop end-to-end || return 1
	export ROCADE_CACHE=$out/cache
	run_logged interop test/interop/kernel.py "$ROCADE_CACHE"
	isolated=no
	! can_isolate || isolated=yes
	e2e_hugepages
	e2e_program interop "$out/release" "$top/test/interop/rxe.py"
	grep -a '^# ' "$out/log/interop-rxe.py.tap"
	e2e_program interop "$out/release" "$top/test/interop/nics.py"
}

stage_e2e_long() {
	local program
	if ! build_release e2e-long || ! build e2e-long sanitize all "${sanitizers[@]}"; then
		return 1
	fi
	e2e e2e-long "$out/sanitize"
	for program in "$top"/test/e2e/long/*.py; do
		e2e_program e2e-long "$out/release" "$program"
	done
	export ROCADE_CACHE=$out/cache
	run_logged e2e-long test/interop/kernel.py "$ROCADE_CACHE"
	e2e_program e2e-long "$out/release" "$top/test/interop/field_guests.py"
}
