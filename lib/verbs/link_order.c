/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "verbs/export.h"
#include "verbs/forward.h"
#include "verbs/link_order.h"

int
link_order_check(void)
{
	/* The dynamic linker resolves the address of an exported function as it resolves the
	 * calls of the program. */
	if (forward_address_in((const void *)ibv_query_gid, "libibverbs."))
		return rocade_fail(EOPNOTSUPP,
			"the program gets its verbs from libibverbs: link -lrocade before "
			"-libverbs");
	return 0;
}
