#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# upgrade.sh: runs in the system of lifecycle.py, which has the packages, /tmp/flow, and newer packages
# in /tmp/newer. Starts a daemon with a pair of clients that verify every message, upgrades beside
# them, starts a second pair, and ends all. Lines "say WORDS" are what happened.
set -eu

say() {
	echo "say $*"
}

alice() {
	setpriv --reuid=alice --regid=alice --init-groups -- env HOME=/home/alice "$@"
}

# bytes: of payload and headers that the present clients have sent
bytes() {
	alice rocade-status --json | python3 -c '
import json, sys
print(sum(c["tx_bytes"] + c["pair_bytes"] for c in json.load(sys.stdin)["clients"]))'
}

clients() {
	alice rocade-status --json | python3 -c '
import json, sys
print(len(json.load(sys.stdin)["clients"]))'
}

has_clients() {
	[ "$(clients)" -ge "$1" ]
}

has_sent() {
	[ "$(bytes)" -ge "$1" ]
}

answers() {
	alice rocade-status >/dev/null 2>&1
}

has_ended() {
	! [ -e "/proc/$1" ]
}

# wait_for COMMAND...: until it succeeds, for a minute at most
wait_for() {
	end=$(($(date +%s) + 60))
	until "$@"; do
		if [ "$(date +%s)" -gt "$end" ]; then
			say "waited a minute in vain for: $*"
			return 1
		fi
		sleep 0.1
	done
}

moves() {
	wait_for has_sent $(($(bytes) + 10000000))
}

# starts_pair NAME: two processes, which run until their input ends. Sets pair.
starts_pair() {
	mkfifo "/tmp/up/$1"
	alice rocade-run /tmp/flow pair <"/tmp/up/$1" >"/tmp/up/$1.txt" 2>&1 8>&- &
	pair=$!
}

mkdir -m 700 /tmp/up
chown alice: /tmp/up
export ROCADE_SOCKET=/tmp/up/rocade.sock
alice rocaded --local 2>/tmp/up/log &
wait_for answers
daemon=$(pgrep -xo rocaded)
starts_pair one
first=$pair
exec 8>/tmp/up/one
wait_for has_clients 2
moves
say "before: $(dpkg-query -W -f '${Version}' rocade)"
apt-get -qy install /tmp/newer/*.deb
say "after: $(dpkg-query -W -f '${Version}' rocade)"
case $(readlink "/proc/$daemon/exe") in
*deleted*) say "the daemon runs the program of before" ;;
esac
if grep -q 'librocade-verbs.*deleted' "/proc/$(pgrep -xo flow)/maps"; then
	say "the clients, too"
fi
moves
say "the clients go on"
starts_pair two
second=$pair
exec 9>/tmp/up/two
wait_for has_clients 4
moves
say "new clients attach to it"
exec 8>&- 9>&-
wait "$first"
say "the first pair has verified all"
wait "$second"
say "the second pair has verified all"
cat /tmp/up/*.txt /tmp/up/log
kill "$daemon"
wait_for has_ended "$daemon"
alice rocaded --local 2>>/tmp/up/log &
wait_for answers
case $(readlink "/proc/$(pgrep -xo rocaded)/exe") in
/usr/bin/rocaded) say "a restarted daemon is the new program" ;;
esac
kill "$(pgrep -xo rocaded)"
wait
