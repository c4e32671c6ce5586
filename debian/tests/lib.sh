# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# Sourced by the tests.

# as_user SCRIPT "$@": runs this test again as an ordinary user, if root runs it
as_user() {
	[ "$(id -u)" = 0 ] || return 0
	folder=$(mktemp -d)
	chown nobody "$folder"
	status=0
	HOME=$folder AUTOPKGTEST_TMP=$folder setpriv --reuid=nobody --regid=nogroup --clear-groups \
		-- sh "$@" || status=$?
	rm -rf "$folder"
	exit "$status"
}
