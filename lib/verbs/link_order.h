/* SPDX-License-Identifier: BSD-3-Clause */
/* The order in which a program has linked librocade and libibverbs. */
#ifndef ROCADE_VERBS_LINK_ORDER_H
#define ROCADE_VERBS_LINK_ORDER_H

/* Returns 0, or EOPNOTSUPP with its text: the program gets its verbs from libibverbs, and would
 * pass Rocade's devices to it. */
int link_order_check(void);

#endif
