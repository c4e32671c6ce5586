/* SPDX-License-Identifier: BSD-3-Clause */
/* Variables of the environment that are lists. A list may have several separators; the first one is put
 * between entries. */
#ifndef RUN_ENV_LIST_H
#define RUN_ENV_LIST_H

#include <stdbool.h>

/* Returns whether the list has this entry. */
bool env_has(const char *name, const char *entry, const char *separators);
/* Puts an entry before the list, unless it is in it. The user's own entries stay. */
void env_prepend(const char *name, const char *entry, const char *separators);
/* Removes an entry from the list, if it is in it. */
void env_remove(const char *name, const char *entry, const char *separators);

#endif
