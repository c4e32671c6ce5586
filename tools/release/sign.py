# SPDX-License-Identifier: BSD-3-Clause
"""Signatures by gpg."""

import os

from commands import output_of, write


class Signer:
    """Signs with a key of gpg. Without one it signs nothing."""

    def __init__(self, key):
        self.key = key

    def _gpg(self, *words):
        return output_of("gpg", "--batch", "--yes", "--local-user", self.key, *words)

    def check(self):
        """Raises NotReady if gpg does not have the secret key."""
        if self.key:
            output_of("gpg", "--batch", "--list-secret-keys", self.key)

    def detached(self, path, to):
        if self.key:
            self._gpg("--armor", "--output", to, "--detach-sign", path)

    def repository(self, root):
        """Signs the lists of packages, and puts the public key beside them."""
        if not self.key:
            return
        for release in sorted(os.listdir(os.path.join(root, "dists"))):
            path = os.path.join(root, "dists", release, "Release")
            self.detached(path, path + ".gpg")
            self._gpg("--clearsign", "--output", os.path.join(os.path.dirname(path), "InRelease"), path)
        write(os.path.join(root, "rocade.asc"),
              output_of("gpg", "--batch", "--armor", "--export", self.key))
