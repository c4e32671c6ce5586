/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs and files beside this one: those of the build tree, or else the installed ones. */
#ifndef COMMON_BESIDE_H
#define COMMON_BESIDE_H

#include <stddef.h>

/* Returns the path relative to this executable if it exists (build tree), else the
 * installed one. */
const char *path_beside_self(
	const char *relative, const char *installed, char *buf, size_t size);

#endif
