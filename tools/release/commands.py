# SPDX-License-Identifier: BSD-3-Clause
"""Commands, and why a release cannot be made."""

import hashlib
import os
import shlex
import subprocess


class NotReady(Exception):
    """A reason, in a sentence."""


def output_of(*words, cwd=None, text=True):
    """What a command prints. Raises NotReady if it fails."""
    done = subprocess.run(words, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, check=False,
                          text=text, env=dict(os.environ, LC_ALL="C.UTF-8", TZ="UTC"))
    if done.returncode != 0:
        errors = done.stderr if text else done.stderr.decode(errors="replace")
        raise NotReady("exit status %d of %s: %s" % (done.returncode, shlex.join(words), errors.strip()))
    return done.stdout


def sha256_of(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write(path, data):
    """Creates a file of a text or of bytes, and its folder."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data.encode() if isinstance(data, str) else data)


def files_below(folder):
    """The paths of all files, sorted, relative to the folder."""
    return sorted(os.path.relpath(os.path.join(where, name), folder)
                  for where, _, names in os.walk(folder) for name in names)
