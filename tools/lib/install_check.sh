#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# install_check.sh BUILD PREFIX: installs a build that was configured for PREFIX, once under a
# DESTDIR and once into PREFIX. Builds a program with the flags of pkg-config. Prints TAP.
set -u

build=$1
prefix=$2
failed=0
number=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# tap NAME STATUS
tap() {
	number=$((number + 1))
	if [ "$2" = 0 ]; then
		echo "ok $number - $1"
	else
		echo "not ok $number - $1"
		failed=1
	fi
}

files() {
	[ ! -d "$1" ] || find "$1" ! -type d
}

# consumer NAME FLAGS...: builds and runs a program that uses the installed library
consumer() {
	name=$1
	shift
	cat >"$scratch/consumer.c" <<'EOF'
#include <stdio.h>
#include <rocade/rocade.h>

int
main(void)
{
	puts(rocade_version());
	return 0;
}
EOF
	cc -Wall -Werror -o "$scratch/consumer" "$scratch/consumer.c" "$@" >&2 &&
		version=$(LD_LIBRARY_PATH="$prefix/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
			"$scratch/consumer") &&
		[ "$version" = "$(pkg-config --modversion "$pc")" ]
	tap "$name" $?
}

rm -rf "$prefix"
DESTDIR=$scratch/dest meson install -C "$build" --no-rebuild >&2
tap "installs under DESTDIR" $?
[ -n "$(files "$scratch/dest$prefix")" ] && [ -z "$(files "$prefix")" ]
tap "and nowhere else" $?
ninja -C "$build" uninstall >&2
[ -z "$(files "$scratch/dest")" ]
tap "uninstall removes it all from DESTDIR" $?

meson install -C "$build" --no-rebuild >&2
tap "installs into the prefix" $?
pc=rocade
# Keep the caller's PKG_CONFIG_PATH: it may name a DPDK outside of the system's folders.
export PKG_CONFIG_PATH="$prefix/lib/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}"
# Unquoted: pkg-config prints words.
# shellcheck disable=SC2046
consumer "a program builds with pkg-config and runs" $(pkg-config --cflags --libs "$pc")
# shellcheck disable=SC2046
consumer "and with the static library" $(pkg-config --cflags "$pc") \
	"$prefix/lib/librocade.a" $(pkg-config --libs libdpdk libisal zlib libibverbs)
# shellcheck disable=SC2046
consumer "and with rocade-static" $(pkg-config --cflags rocade-static) \
	$(pkg-config --static --libs rocade-static libdpdk)
# shellcheck disable=SC2046
consumer "and with rocade-rdmacm" $(pkg-config --cflags --libs rocade-rdmacm)
cp -r "$prefix/share/doc/rocade/examples" "$scratch" && make -C "$scratch/examples" CFLAGS='-O2 -Wall -Werror' >&2
tap "the installed examples build with their Makefile" $?
result=$(LD_LIBRARY_PATH="$prefix/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
	"$scratch/examples/embed" --no-huge --no-pci --no-shconf -l 0 -m 256 -- --messages 5000)
echo "$result" >&2
[ "${result#5000 messages of 1000 bytes by 4 QPs into one SRQ, all verified}" != "$result" ]
tap "and one of them runs" $?
[ "$("$prefix/bin/rocade-doctor" --version)" = "rocade-doctor $(pkg-config --modversion "$pc")" ]
tap "rocade-doctor runs where it is installed" $?
# shellcheck disable=SC2016 # for the inner shell
"$prefix/bin/rocade-run" --start-local sh -c 'grep -q "$1" /proc/$$/maps' sh \
	"$prefix/lib/rocade/librocade-verbs.so" >&2
tap "rocade-run finds its daemon and its library where they are installed" $?
ninja -C "$build" uninstall >&2
[ -z "$(files "$prefix")" ]
tap "uninstall removes it all" $?
rm -rf "$prefix"

echo "1..$number"
exit "$failed"
