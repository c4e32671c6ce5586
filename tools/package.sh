#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds Rocade's Debian packages in chroots, and installs, runs, upgrades and removes them.
set -u -o pipefail

usage() {
	cat <<'EOT2'
Usage: tools/package.sh [--release NAME]... [--arch ARCH]... [--work DIR] [--out DIR] [--no-check]
                        [--build-only]

For each release: makes a minimal chroot with debootstrap, builds the source and binary
packages in a copy of it, and runs lintian. Installs the packages in another copy, runs them as an
ordinary user, upgrades them beside running clients of a daemon, removes and purges them, and
compares the files before and after. Runs debian/tests with autopkgtest in a third copy. Builds and
runs the image of Containerfile, and runs the steps of action.yml. Prints TAP.

For arm64 on another machine (tried for trixie only): builds with the cross compiler, without the unit
tests, checks what is in the packages, builds programs with librocade-dev, installs the packages in a
minimal system, and runs the programs under qemu-user.

  --release NAME  bookworm, trixie, forky (Debian's testing release) or noble (Ubuntu 24.04); may be
                  repeated (bookworm and trixie)
  --arch ARCH     this machine's architecture or arm64; may be repeated (this machine's)
  --work DIR      chroots and packages (build-test/packages). The minimal chroots are kept there and
                  used again, as is the compiler's cache
  --out DIR       copy the packages to DIR/RELEASE
  --no-check      build without the unit tests (DEB_BUILD_OPTIONS=nocheck)
  --build-only    build and run lintian, nothing else
  -h, --help      print this text

Needs root, a mirror of Debian, and debootstrap; autopkgtest for debian/tests, and buildah for the
image. Exit status: 0 all passed, 1 a case failed, 2 wrong option, 3 cannot set up.
EOT2
}

top=$(cd "$(dirname "$0")/.." && pwd)
for arg in "$@"; do
	case $arg in
	-h | --help)
		usage
		exit 0
		;;
	esac
done
# Debian's own tools, not others of the same name
export PATH="/usr/sbin:/usr/bin:/sbin:/bin:$PATH" PYTHONDONTWRITEBYTECODE=1
exec python3 "$top/tools/package/package.py" "$top" "$@"
