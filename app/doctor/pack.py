#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""pack.py OUTPUT VERSION FILE...: makes an executable of Python files, by zipapp's format: an
interpreter line, and a zip archive whose __main__.py Python runs."""

import os
import sys
import zipfile

FIXED = (2000, 1, 1, 0, 0, 0)  # the same input makes the same file


def main():
    output, version, *files = sys.argv[1:]
    entries = [(os.path.basename(path), open(path, "rb").read()) for path in files]
    entries.append(("version.py", b'VERSION = "%s"\n' % version.encode()))
    with open(output, "wb") as file:
        file.write(b"#!/usr/bin/env python3\n")
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in sorted(entries):
                archive.writestr(zipfile.ZipInfo(name, FIXED), content, zipfile.ZIP_DEFLATED)
    os.chmod(output, 0o755)


if __name__ == "__main__":
    main()
