#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Installs missing packages, builds, and runs all tests. docs/testing.md explains the stages.
set -u -o pipefail

usage() {
	cat <<'EOF'
Usage: tools/test.sh [--change [REV]] [--all] [--long] [--stage NAME]... [--clean] [--repeat N]
                     [--busy N]

Installs the Debian packages that are missing (as root), builds, runs the tests. Takes 20 to 30
minutes on two cores. So the stages marked * and the programs of stage e2e take turns, which the hash
of the newest commit decides.

Stages, in this order:
  shellcheck  every shell script
  release     the build that people install, and all its tests
  tidy        the rules of the tree: includes, words, citations (test/tidy)
* sanitize    all tests of compiled code again under AddressSanitizer and
              UndefinedBehaviorSanitizer
* clang       builds without a warning with clang too
  install     installs, builds a program with pkg-config, uninstalls
  packages    debian/ against what install installs (--long: builds the Debian packages in chroots,
              installs, upgrades and removes them: tools/package.sh)
  e2e         test/e2e: whole programs, network namespaces, hugepages (as root), two at a time
* interop     test/interop: against the Linux kernel's driver in QEMU (as root)
  sim         2,000 seeds of the simulation of whole hosts (--all: 10,000, --long: 200,000)
* arm64       builds for arm64 without a warning; tests of wire formats and 20 seeds of the
              simulation under qemu-user (--long: the unit and protocol tests, 500 seeds)
  cost        a message takes no more instructions than test/cost/numbers.tsv allows
* coverage    the tests run at least 95 % of the lines of lib/, 85 % of drivers/ and of the
              daemon and client programs
* tsan        tests with threads under ThreadSanitizer (test/tsan)
  mutants     100 faults of test/mutants, drawn by the commit, each make a test fail (--all: 150,
              --long: all)
* fuzz        each libFuzzer target of test/fuzz for 35 seconds (--long: ten minutes)
  e2e-long    with --long, or as a --stage: the same with the sanitized programs

  --change [REV]  in place of the stages, only what differs from the commit REV (HEAD if there is none):
                the release build, the tidy rules, the tests that depend on the changed files, 500 seeds
                of the simulation if it does, the mutants of the changed functions
  --all         every stage and program, at the size of a default run: about an hour
  --stage NAME  only this stage (repeat for more); builds what it needs of "release"
  --long        sets ROCADE_TEST_LONG=1 (tests do many more rounds), allows each program an
                hour and a half, runs those of e2e one at a time, and adds e2e-long. If it was ended,
                the next one goes on: a stage that passed on the same commit is not run again
  --clean       build from scratch, not on top of the last run
  --repeat N    runs the stages N times; the logs of a run that fails go to log-run-NUMBER/
  --busy N      beside N busy loops; the programs of stage e2e then run one at a time
  -h, --help

Writes to build-test/ in the source tree: build directories, log/, and results with a line per
test case. As root, sets up hugepages for the e2e stages and releases them at the end, also on
Ctrl-C. A skipped case counts as failed unless test/skips lists it (stage arm64: test/arm64/skips).

The last line is "N passed, N failed, N skipped". Exit status: 0 no case failed, 1 a case
failed, 2 wrong option, 3 cannot install or write, 130 interrupted.
EOF
}

top=$(cd "$(dirname "$0")/.." && pwd)
# git refuses a tree of another user, whose programs are run here.
git_options=${GIT_CONFIG_COUNT:-0}
export "GIT_CONFIG_KEY_$git_options=safe.directory" "GIT_CONFIG_VALUE_$git_options=$top"
export GIT_CONFIG_COUNT=$((git_options + 1))
out=$top/build-test
results=$out/results
all_stages='shellcheck release tidy sanitize clang install packages e2e interop'
all_stages="$all_stages sim arm64 cost coverage tsan mutants fuzz"
turn_note=
stages=
turns=yes
rev=
long=no
clean=no
repeat=1
loops=0
number() {
	[[ $2 =~ ^[1-9][0-9]{0,3}$ ]] && return
	echo "test.sh: invalid value '$2' for $1: expected 1 to 9999" >&2
	exit 2
}
while [ $# -gt 0 ]; do
	case $1 in
	--long) long=yes turns=no ;;
	--all) turns=no ;;
	--change)
		rev=HEAD
		case ${2:--} in
		-*) ;;
		*)
			rev=$2
			shift
			;;
		esac
		;;
	--clean) clean=yes ;;
	--repeat)
		shift
		repeat=${1:-}
		number --repeat "$repeat"
		;;
	--busy)
		shift
		loops=${1:-}
		number --busy "$loops"
		;;
	--stage)
		shift
		case " $all_stages e2e-long " in
		*" ${1:-} "*) stages="$stages $1" turns=no ;;
		*)
			echo "test.sh: invalid value '${1:-}' for --stage: expected one of $all_stages e2e-long" >&2
			exit 2
			;;
		esac
		;;
	-h | --help)
		usage
		exit 0
		;;
	*)
		echo "test.sh: unknown option '$1' (see --help)" >&2
		exit 2
		;;
	esac
	shift
done
if [ -n "$rev" ]; then
	if [ -n "$stages" ] || [ "$long" = yes ]; then
		echo "test.sh: --change cannot be combined with --stage or --long" >&2
		exit 2
	fi
	if ! git -C "$top" rev-parse --git-dir >/dev/null 2>&1; then
		echo "test.sh: --change compares with a commit, and $top is no git tree" >&2
		exit 2
	fi
	if ! git -C "$top" rev-parse --quiet --verify "$rev^{commit}" >/dev/null; then
		echo "test.sh: invalid value '$rev' for --change: expected a commit" >&2
		exit 2
	fi
	stages=change
	turns=no
fi
if [ "$long" = yes ]; then
	export ROCADE_TEST_LONG=1
	all_stages="$all_stages e2e-long"
fi

# shellcheck source=tools/lib/session.sh
. "$top/tools/lib/session.sh"
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1}
export PYTHONUNBUFFERED=1 # a test that is killed has printed how far it came
jobs=$(nproc)
skips=test/skips # the skips that the present stage allows

case $top in
*[[:space:]]*) die "the tree is in '$top': expected a path without blanks" ;;
/tmp/* | /var/tmp/* | /run/* | /dev/*)
	# EAL loads no drivers from below a directory that every user may write to. The namespaces of
	# tests have another /run, and the guests of stage interop another /tmp and /dev.
	die "the tree is in '$top': expected a folder that is not below /tmp, /var/tmp, /run or /dev"
	;;
esac
# Programs of the stage e2e run as a user without rights.
case "$(id -u) ${stages:-e2e} " in
"0 "*e2e*)
	if ! setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$top/tools/test.sh"; then
		die "the tree is in '$top': expected a folder that other users may enter, for the stage e2e"
	fi
	;;
esac
if ! mkdir -p "$out" 2>/dev/null || [ ! -w "$out" ]; then
	die "cannot write to '$out'"
fi

cd "$top" || exit 1
if [ "$long" = yes ]; then
	tools/install-deps.sh --long || exit 3
else
	tools/install-deps.sh || exit 3
fi
exec 9>"$out/lock"
if ! flock -n 9; then
	die "another run is using $out"
fi
if [ "$clean" = yes ]; then
	rm -rf "$out"/{release,sanitize,clang,arm64,coverage,tsan,mutants,fuzz,long}
fi
rm -rf "$out"/log "$out"/log-run-* "$results"
mkdir -p "$out/log"
: >"$results"

# shellcheck source=tools/lib/stages.sh
. tools/lib/stages.sh
# shellcheck source=tools/lib/e2e.sh
. tools/lib/e2e.sh

session_begin

# The stages of this run. Other commits have the rest.
if [ -z "$stages" ] && [ "$turns" = yes ]; then
	left=" $(tools/lib/turns.py "$top" stages | tr '\n' ' ')"
	for stage in $all_stages; do
		case $left in
		*" $stage "*) ;;
		*) stages="$stages $stage" ;;
		esac
	done
	turn_note="Left to other commits:${left% } and a part of e2e (--all runs them)"
	echo "$turn_note"
fi
: "${stages:=$all_stages}"

# run_logged LOG COMMAND...: shows the end of the log when the command fails
run_logged() {
	local log=$out/log/$1.log
	shift
	run "$@" >>"$log" 2>&1 && return 0
	tail -n 40 "$log" | sed 's/^/  | /'
	return 1
}

# check STAGE CASE COMMAND...: one case, which passes when the command succeeds
check() {
	local stage=$1 name=$2
	shift 2
	if run_logged "$stage" "$@"; then
		printf 'passed\t%s\t%s\t\n' "$stage" "$name" >>"$results"
		echo "  ok $name"
	else
		printf 'failed\t%s\t%s\t\n' "$stage" "$name" >>"$results"
		echo "  FAILED $name"
		return 1
	fi
}

# configure STAGE DIR SETUP_OPTION...
configure() {
	local stage=$1 dir=$out/$2
	shift 2
	[ ! -f "$dir/build.ninja" ] || return 0
	rm -rf "$dir"
	check "$stage" configure meson setup "$@" "$dir" "$top"
}

# build STAGE DIR TARGET SETUP_OPTION...: TARGET is a ninja target, or all
build() {
	local stage=$1 dir=$2 target=$3
	shift 3
	configure "$stage" "$dir" "$@" && check "$stage" build ninja -C "$out/$dir" -j "$jobs" "$target"
}

# meson_tests STAGE DIR MULTIPLIER OPTION...
meson_tests() {
	local stage=$1 dir=$out/$2 multiplier=$3
	shift 3
	[ "$long" = no ] || multiplier=120
	rm -f "$dir/meson-logs/testlog.json"
	# One more than there are cores, as some wait.
	run meson test -C "$dir" --no-rebuild --timeout-multiplier "$multiplier" \
		--num-processes $((jobs + 1)) "$@" >"$out/log/$stage-tests.log" 2>&1
	if [ ! -f "$dir/meson-logs/testlog.json" ]; then
		tail -n 20 "$out/log/$stage-tests.log"
		printf 'failed\t%s\t%s\t\n' "$stage" "meson test" >>"$results"
		return 1
	fi
	cp "$dir/meson-logs/testlog.txt" "$out/log/$stage-tests.log"
	tools/lib/results.py meson "$stage" "$dir/meson-logs/testlog.json" "$skips" "$results"
}

# count RESULT [FIRST]: the cases with this result, from line FIRST of the results on
count() {
	tail -n "+${2:-1}" "$results" | awk -F '\t' -v r="$1" '$1 == r' | wc -l
}

table=
run_stage() {
	local stage=$1 started=$SECONDS first minutes line record=$out/long/$1
	first=$(($(wc -l <"$results") + 1))
	echo "== $stage"
	if [ -n "$tree" ] && [ "$(head -n 1 "$record" 2>/dev/null)" = "$tree" ]; then
		line=$(sed -n 2p "$record")
		tail -n +3 "$record" >>"$results"
		printf '   %s\n   passed before on this commit (--clean runs it again)\n' "$line"
		table="$table$line
"
		return
	fi
	"stage_${stage//-/_}"
	minutes=$(awk -v s=$((SECONDS - started)) 'BEGIN { printf "%.1f", s / 60 }')
	line=$(printf '%-11s %6s min %6s passed %6s failed %6s skipped' "$stage" "$minutes" \
		"$(count passed "$first")" "$(count failed "$first")" "$(count skipped "$first")")
	echo "   $line"
	table="$table$line
"
	[ -n "$tree" ] && [ "$(count failed "$first")" = 0 ] || return 0
	mkdir -p "$out/long"
	{
		printf '%s\n%s\n' "$tree" "$line"
		tail -n "+$first" "$results"
	} >"$record"
}

# The commit that a long run tests, if the tree has no changes. A stage that passed on it is not run again.
tree=
if [ "$long$repeat" = yes1 ] && [ -z "$(git status --porcelain 2>&1)" ]; then
	tree=$(git rev-parse HEAD)
	echo "commit $tree, $(date +%F)"
fi

busy_loops "$loops"
for ((round = 1; round <= repeat; round++)); do
	[ "$repeat" = 1 ] || echo "==== run $round of $repeat"
	failed=$(count failed)
	for stage in $stages; do
		run_stage "$stage"
	done
	[ "$repeat" = 1 ] || [ "$(count failed)" = "$failed" ] || cp -r "$out/log" "$out/log-run-$round"
done

echo
printf '%s' "$table"
[ -z "$turn_note" ] || echo "$turn_note"
awk -F '\t' '$1 == "failed" { printf "FAILED %s  %s  %s\n", $2, $3, $4 }' "$results"
echo "$(count passed) passed, $(count failed) failed, $(count skipped) skipped"
[ "$(count failed)" = 0 ]
