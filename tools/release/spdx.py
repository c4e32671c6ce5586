# SPDX-License-Identifier: BSD-3-Clause
"""A bill of materials as SPDX 2.3: the source archive, the packages that were built from it, and the
packages of the system that these need."""

import json
import os
import re
import time

from commands import sha256_of
from repository import field_of

LICENSE = "BSD-3-Clause"
NAMESPACE = "https://spdx.org/spdxdocs/"


def identifier(*words):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", "-".join(words))


def needed_by(deb):
    """The names in Pre-Depends and Depends, sorted. Of alternatives the first."""
    fields = "%s, %s" % (field_of(deb, "Pre-Depends"), field_of(deb, "Depends"))
    names = [re.match(r"\s*([a-z0-9][a-z0-9+.-]*)", one) for one in fields.split(",")]
    return sorted({name[1] for name in names if name})


def own(spdx_id, name, version, path):
    return {"SPDXID": spdx_id, "name": name, "versionInfo": version,
            "packageFileName": os.path.basename(path), "downloadLocation": "NOASSERTION",
            "filesAnalyzed": False, "licenseConcluded": LICENSE, "licenseDeclared": LICENSE,
            "copyrightText": "NOASSERTION",
            "checksums": [{"algorithm": "SHA256", "checksumValue": sha256_of(path)}]}


def foreign(spdx_id, name):
    return {"SPDXID": spdx_id, "name": name, "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
            "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION",
            "copyrightText": "NOASSERTION"}


def relation(one, kind, other):
    return {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}


def ids_of(release, debs):
    """The identifier of each of a release's packages, by path, and by name and architecture."""
    by_path, by_name = {}, {}
    for deb in debs:
        name, kind = field_of(deb, "Package"), field_of(deb, "Architecture")
        by_path[deb] = by_name[name, kind] = identifier("deb", release, name, kind)
    return by_path, by_name


def document(version, time_s, archive, packages):
    """The document as JSON. packages: the paths of each release's."""
    source = identifier("source")
    rows = {source: own(source, "rocade", version, archive)}
    relations = [relation("SPDXRef-DOCUMENT", "DESCRIBES", source)]
    for release, debs in packages.items():
        by_path, by_name = ids_of(release, debs)
        for deb, this in by_path.items():
            kind = field_of(deb, "Architecture")
            rows[this] = own(this, field_of(deb, "Package"), version, deb)
            relations += [relation("SPDXRef-DOCUMENT", "DESCRIBES", this),
                          relation(this, "GENERATED_FROM", source)]
            for need in needed_by(deb):
                foreign_id = identifier("system", release, need)
                other = by_name.get((need, kind)) or by_name.get((need, "all")) or foreign_id
                if other == foreign_id:
                    rows.setdefault(other, foreign(other, need))
                relations.append(relation(this, "DEPENDS_ON", other))
    return json.dumps({
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
        "name": "rocade-" + version,
        "documentNamespace": "%srocade-%s-%s" % (NAMESPACE, version, sha256_of(archive)),
        "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time_s)),
                         "creators": ["Tool: rocade-release"]},
        "packages": list(rows.values()), "relationships": relations}, indent=1) + "\n"
