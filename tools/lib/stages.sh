# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Sourced by tools/test.sh: the stages that need no root. Uses its variables and its check, build
# and meson_tests, and run of session.sh.
# shellcheck disable=SC2034,SC2154 # test.sh sets and reads these variables

# build_release STAGE [TARGET]: everything, or the ninja target
build_release() {
	build "$1" release "${2:-all}" --buildtype=release --prefix="$out/prefix" --libdir=lib
}

# The reports name lines, which takes -g1 and a quarter less than -g.
sanitizers=('-Db_sanitize=address,undefined' -Doptimization=1 -Ddebug=false -Dc_args=-g1)

# build_targets STAGE DIR TEST...: what these tests need. TEST: as for test_targets.py.
build_targets() {
	local stage=$1 dir=$out/$2 targets
	shift 2
	mapfile -t targets < <(tools/lib/test_targets.py "$dir" "$@")
	check "$stage" build ninja -C "$dir" -j "$jobs" "${targets[@]}"
}

stage_shellcheck() {
	local script
	while read -r script; do
		check shellcheck "$script" shellcheck -x "$script"
	done < <(find . -path './build*' -prune -o -path ./.git -prune -o -type f -print |
		sort | while read -r file; do
		case $file in
		*.sh) echo "$file" ;;
		*) head -c 40 "$file" | head -n 1 | grep -aqE '^#!.*\b(ba|da)?sh\b' && echo "$file" ;;
		esac
	done)
}

stage_release() {
	build_release release && meson_tests release release 5 --no-suite tidy
}

stage_tidy() {
	build_release tidy && meson_tests tidy release 5 --suite tidy
}

stage_sanitize() {
	local tests=(--no-suite=tidy --no-suite=scripts)
	configure sanitize sanitize "${sanitizers[@]}" && build_targets sanitize sanitize "${tests[@]}" &&
		meson_tests sanitize sanitize 10 "${tests[@]}"
}

stage_clang() {
	CC=clang build clang clang all
}

# tap STAGE COMMAND...: runs a program of tools/lib that prints TAP, for half an hour at most
tap() {
	local stage=$1 log=$out/log/$1 status limit=1800
	shift
	[ "$long" = no ] || limit=36000
	run timeout -k 10 "$limit" "$@" >"$log.tap" 2>"$log.err"
	status=$?
	[ "$status" != 124 ] || echo "test.sh: took longer than $limit s" >>"$log.err"
	tools/lib/results.py tap "$stage" "$stage" "$log.tap" "$status" "$skips" "$results" ||
		tail -n 80 "$log.err" | sed 's/^/  | /'
}

stage_install() {
	build_release install &&
		tap install tools/lib/install_check.sh "$out/release" "$out/prefix"
}

# The packages are built and tried with --long only: that takes chroots of two releases of Debian.
stage_packages() {
	build_release packages &&
		tap packages python3 tools/package/check.py "$top" "$out/release" "$out/prefix"
	[ "$long" = yes ] || return 0
	check packages tools/install-deps.sh --packages &&
		tap packages-long tools/package.sh --work "$out/packages" &&
		tap packages-arm64 tools/package.sh --work "$out/packages" --release trixie --arch arm64
}

stage_sim() {
	local seeds=2000
	[ "$turns" = yes ] || seeds=10000
	[ "$long" = no ] || seeds=200000
	build_release sim &&
		tap sim "$out/release/test/sim/sim" --seeds "$seeds" --jobs "$jobs"
}

# Debian's cross compiler, with the libraries in a sysroot. qemu-user runs the programs, slowly: in
# the long run more tests, but not more rounds of each. On an arm64 machine the stage has nothing to
# do: all the others are of arm64 there.
stage_arm64() {
	local skips=test/arm64/skips seeds=20 tests=(--suite wire)
	local -x ROCADE_EMULATED=1
	[ "$(uname -m)" != aarch64 ] || return 0
	check arm64 sysroot tools/lib/arm64.py "$out/cache" &&
		build arm64 arm64 all --buildtype=release --cross-file "$out/cache/arm64/cross.ini" ||
		return 1
	if [ "$long" = yes ]; then
		seeds=500
		mapfile -t tests < <(tools/lib/arm64.py --tests "$out/arm64")
	fi
	export -n ROCADE_TEST_LONG
	meson_tests arm64 arm64 20 "${tests[@]}"
	tap arm64 "$out/cache/arm64/run" "$out/arm64/test/sim/sim" --seeds "$seeds" --jobs "$jobs"
	[ "$long" = no ] || export ROCADE_TEST_LONG
}

stage_cost() {
	build_release cost && tap cost tools/lib/cost.py "$out/release"
	grep -a '^ok\|^not ok\|^#' "$out/log/cost.tap" | sed 's/^/  /'
}

# Fewer seeds of the sweeps reach the same lines. Threads count atomically: else they lose counts, and
# gcov computes negative ones from what is left, which gcovr refuses. The tidy suite is left out: this
# build exports gcov's symbols too.
stage_coverage() {
	build coverage coverage meson-test-prereq -Db_coverage=true -Doptimization=0 -Ddebug=true \
		-Dc_args=-fprofile-update=atomic || return 1
	find "$out/coverage" -name '*.gcda' -delete
	ROCADE_SEEDS=150 meson_tests coverage coverage 10 --suite unit --suite verbs \
		--no-suite shipped
	tap coverage tools/lib/coverage.py "$top" "$out/coverage" "$out/log" \
		lib=95 drivers=85 app/rocaded=85 app/run=85 app/status=85
	grep -a '^ok\|^not ok\|^#' "$out/log/coverage.tap" | sed 's/^/  /'
}

# DPDK's inline primitives are compiled as atomic builtins: ThreadSanitizer does not see assembler.
# It does not know fences (-Wno-tsan). All data that fences order is atomic, so it does not report
# false races. It does not see a missing fence.
stage_tsan() {
	local tests
	mapfile -t tests < <(printf 'tsan_race\ntsan_lock\n' && sed -n '/^[a-z]/p' test/tsan/tests)
	configure tsan tsan -Db_sanitize=thread -Db_lundef=false -Doptimization=1 -Ddebug=false \
		'-Dc_args=-g1 -DRTE_FORCE_INTRINSICS -Wno-tsan' || return 1
	build_targets tsan tsan "${tests[@]}" || return 1
	TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1 meson_tests tsan tsan 20 "${tests[@]}"
}

stage_mutants() {
	local most=(--most 100)
	[ "$turns" = yes ] || most=(--most 150)
	[ "$long" = no ] || most=()
	tap mutants tools/lib/mutants.py "${most[@]}" "$top" "$out/mutants"
}

stage_fuzz() {
	local seconds=35
	[ "$long" = no ] || seconds=600
	CC=clang build fuzz fuzz fuzz-programs -Dfuzz=true -Db_sanitize=address,undefined \
		-Db_lundef=false -Doptimization=1 -Ddebug=true &&
		tap fuzz tools/lib/fuzz.py "$top" "$out/fuzz" "$out/fuzz-runs" "$seconds"
	sed -n 's/^ok [0-9]* - /  /p' "$out/log/fuzz.tap" 2>/dev/null
}

# The files that differ from the commit $rev, and the tests that depend on them. A worker runs the fabric, which takes
# the longest, beside the others but those that run alone.
stage_change() {
	local kind name listed list=$out/log/change.list tests=() alone=() files=() sim=no fabric=no
	build_release change && meson_tests change-tidy release 5 --suite tidy
	[ -f "$out/release/build.ninja" ] || return 1
	# shellcheck disable=SC2016 # the inner shell has these arguments
	check change "what depends on it" sh -c 'tools/lib/change.py "$1" "$2" "$3" >"$4"' change \
		"$top" "$out/release" "$rev" "$list" || return 1
	while read -r kind name; do
		case $kind in
		test) tests+=("$name") ;;
		alone) alone+=("$name") ;;
		sim) sim=yes ;;
		fabric) fabric=yes ;;
		file) files+=(--in "$name") ;;
		esac
	done <"$list"
	echo "  $((${#files[@]} / 2)) files differ from $rev, $((${#tests[@]} + ${#alone[@]})) tests depend on them"
	[ "$fabric" = no ] || worker tap change-fabric "$out/release/test/fabric/fabric"
	[ ${#tests[@]} = 0 ] || meson_tests change release 5 "${tests[@]}"
	[ "$sim" = no ] || tap change-sim "$out/release/test/sim/sim" --seeds 500 --jobs "$jobs"
	[ "$fabric" = no ] || workers_wait
	[ ${#alone[@]} = 0 ] || meson_tests change-alone release 5 "${alone[@]}"
	[ ${#files[@]} != 0 ] || return 0
	files+=(--since "$rev")
	# If even the list fails, the mutants say why.
	listed=$(tools/lib/mutants.py --list "${files[@]}" "$top" "$out/mutants") || listed=failed
	[ -z "$listed" ] || tap change-mutants tools/lib/mutants.py "${files[@]}" "$top" "$out/mutants"
}
