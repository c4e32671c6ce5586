/* SPDX-License-Identifier: BSD-3-Clause */
/* Structures of a program that was built with the header of another release. */
#include <errno.h>

#include "verbs/verbs_port.h"

#define SIZE_MORE 4096 /* bytes that a later release has, at most */

int
conf_size_check(const struct conf_kind *kind, size_t size)
{
	if (size < kind->least || size % sizeof(size_t) != 0 ||
		size > kind->known + SIZE_MORE)
		return rocade_fail(EINVAL, "%ssize: %zu is not sizeof(%s), which is %zu",
			kind->within, size, kind->type, kind->known);
	return 0;
}

int
conf_take(const struct conf_kind *kind, void *out, const void *conf, size_t size)
{
	const uint8_t *bytes = conf;
	int err = conf_size_check(kind, size);

	if (err != 0)
		return err;
	for (size_t i = kind->known; i < size; i++) {
		if (bytes[i] != 0)
			return rocade_fail(EINVAL,
				"%ssize: a member behind those that this library knows "
				"is not 0",
				kind->within);
	}
	memset(out, 0, kind->known);
	memcpy(out, conf, RTE_MIN(size, kind->known));
	return 0;
}
