/* SPDX-License-Identifier: BSD-3-Clause */
/* Things for which a program has looked in vain, for `rocade-run --explain`: the process prints them at its
 * end. */
#ifndef ROCADE_BASE_IN_VAIN_H
#define ROCADE_BASE_IN_VAIN_H

#include <stdbool.h>

#define IN_VAIN_ENV "ROCADE_EXPLAIN"

enum in_vain {
	IN_VAIN_PATH,
	IN_VAIN_SYMBOL,
	IN_VAIN_CALL,
	IN_VAIN_NETLINK,
	IN_VAIN_KINDS
};

/* Whether the environment asks for it, when this is first called. */
bool in_vain_wanted(void);
/* Keeps the text, once, if the environment asks for it and there is room. Preserves errno. Any thread. */
void in_vain_note(enum in_vain kind, const char *text);

#endif
