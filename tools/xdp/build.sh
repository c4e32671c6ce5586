#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Compiles the XDP program that brings the frames for some addresses to net_af_xdp.
set -eu

usage() {
	cat <<'EOF'
Usage: tools/xdp/build.sh OUTPUT ADDRESS...

Writes the XDP program for these addresses of Rocade (IPv4 or IPv6, without a prefix) to OUTPUT, for
the argument xdp_prog= of net_af_xdp. Needs clang, python3, and the headers of libbpf and Linux.

Exit status: 0 done, 1 it does not compile, 2 wrong arguments.
EOF
}

case ${1-} in
-h | --help)
	usage
	exit 0
	;;
esac
if [ $# -lt 2 ]; then
	usage >&2
	exit 2
fi
output=$1
shift
addresses=$(python3 -c '
import ipaddress, sys
for text in sys.argv[1:]:
    address = ipaddress.ip_address(text)
    data = bytes(10) + b"\xff\xff" + address.packed if address.version == 4 else address.packed
    print("{.bytes = {%s}}," % ", ".join(map(str, data)), end=" ")
' "$@" 2>&1) || {
	echo "build.sh: invalid address in '$*': expected IPv4 or IPv6 addresses without a prefix" >&2
	exit 2
}
exec clang -O2 -g -Wall -Wextra -Werror -target bpf -I"/usr/include/$(uname -m)-linux-gnu" \
	"-DADDRESSES=$addresses" -c "$(dirname "$0")/rocade_xdp.c" -o "$output"
