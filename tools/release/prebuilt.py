# SPDX-License-Identifier: BSD-3-Clause
"""The GitHub Action with packages in place of the source: it needs no compiler. Its folder becomes a
branch, to which jobs refer."""

import os
import re
import shutil

from commands import NotReady, sha256_of, write

RELEASE = "noble"  # the runners' Ubuntu 24.04
PACKAGES = ("librocade0", "rocade")
INSTALL = """    - name: Install Rocade
      shell: bash
      env:
        PACKAGES: ${{ github.action_path }}
      run: |
        cd "$PACKAGES"
        sha256sum --quiet -c SHA256SUMS
        kind=$(dpkg --print-architecture)
        sudo apt-get update -q
        sudo apt-get install -y -q --no-install-recommends ./*_"$kind".deb
        rocade-run --version

"""


STEP = r"^    - name: Build and install Rocade\n.*?(?=^    - name: )"
HEAD = """# SPDX-License-Identifier: BSD-3-Clause
# Made by tools/release.sh: a GitHub Action for jobs on Ubuntu 24.04, which installs packages.
"""


def action_text(text):
    """action.yml of the tree, with the step that builds replaced."""
    text, found = re.subn(STEP, lambda _: INSTALL, text, flags=re.M | re.S)
    if found != 1:
        raise NotReady("action.yml has no step \"Build and install Rocade\" with one behind it")
    return HEAD + text[text.index("name: "):]


def prebuilt_make(folder, text, debs):
    """text: of action.yml. debs: of RELEASE."""
    chosen = [deb for deb in debs if os.path.basename(deb).split("_")[0] in PACKAGES]
    os.makedirs(folder)
    for deb in chosen:
        shutil.copyfile(deb, os.path.join(folder, os.path.basename(deb)))
    write(os.path.join(folder, "action.yml"), action_text(text))
    write(os.path.join(folder, "SHA256SUMS"), "".join(
        "%s  %s\n" % (sha256_of(deb), os.path.basename(deb)) for deb in chosen))
