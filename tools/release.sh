#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Makes all files of a release.
set -u -o pipefail

usage() {
	cat <<'EOT2'
Usage: tools/release.sh --out DIR (--key KEY | --unsigned) [--packages DIR] [--draft]

Makes the files of a release of Rocade from the newest commit, in DIR, which it creates:

  rocade-VERSION.tar.gz      the source archive
  rocade-VERSION.spdx.json   a bill of materials (SPDX 2.3): archive, packages, their dependencies
  apt/                       a repository for apt-get, with the packages of each release
  action/                    the GitHub Action with packages, if there are some for Ubuntu 24.04 (noble)
  NOTES.md                   the section of CHANGELOG.md
  SHA256SUMS                 of all of them
  *.asc, apt/dists/*/InRelease, apt/dists/*/Release.gpg, apt/rocade.asc
                             signatures, and the public key

The same commit and packages make the same files, but for the signatures.

  --out DIR       the folder to create
  --key KEY       sign with this key of gpg: a fingerprint or an address
  --unsigned      do not sign. apt-get then refuses the repository
  --packages DIR  packages that tools/package.sh --out DIR has made: DIR/RELEASE/*.deb. Default: runs
                  tools/package.sh --out DIR.packages, with all its tests (as root; an hour)
  --draft         also from a tree that is not ready: CHANGELOG.md says "unreleased", files are not
                  committed (and are not in the release), or the versions differ
  -h, --help      print this text

Needs git, gpg, dpkg-deb and apt-ftparchive (Debian's apt-utils). Exit status: 0 made, 1 a test of the
packages failed, 2 wrong option, 3 the tree is not ready or a program is missing. docs/releasing.md says
what comes before and after.
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
export PYTHONDONTWRITEBYTECODE=1
exec python3 "$top/tools/release/release.py" "$top" "$@"
