/* SPDX-License-Identifier: BSD-3-Clause */
/* Structures of a program that was built with the header of another release. */
#include <errno.h>

#include "verbs/verbs_port.h"

#define SIZE_MORE 4096 /* bytes that a later release has, at most */

int
conf_take(void *out, size_t known, const void *conf, size_t size, size_t least,
	const char *type)
{
	const uint8_t *bytes = conf;

	if (size < least || size % sizeof(size_t) != 0 || size > known + SIZE_MORE)
		return rocade_fail(EINVAL, "size: %zu is not sizeof(%s), which is %zu",
			size, type, known);
	for (size_t i = known; i < size; i++) {
		if (bytes[i] != 0)
			return rocade_fail(EINVAL,
				"size: a member behind those that this library knows is not 0");
	}
	memset(out, 0, known);
	memcpy(out, conf, RTE_MIN(size, known));
	return 0;
}
