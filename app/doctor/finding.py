# SPDX-License-Identifier: BSD-3-Clause
"""What a check says."""

from collections import namedtuple

# WRONG: something does not work, or cannot. NOTE: it works, and could be better or is worth
# knowing. UNKNOWN: this user, or this host, does not let it be seen.
OK, NOTE, UNKNOWN, WRONG = "ok", "note", "unknown", "wrong"

# check: its name. sentence: what is so. type: the commands that change it.
Finding = namedtuple("Finding", "check verdict sentence type")


def good(check, sentence):
    return Finding(check, OK, sentence, [])


def note(check, sentence, *commands):
    return Finding(check, NOTE, sentence, list(commands))


def unknown(check, sentence, *commands):
    return Finding(check, UNKNOWN, sentence, list(commands))


def wrong(check, sentence, *commands):
    return Finding(check, WRONG, sentence, list(commands))
