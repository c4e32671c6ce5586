/* SPDX-License-Identifier: BSD-3-Clause */
/* What librocade-rdmacm (drivers/preload) uses of librocade (drivers/rdmacm): the two may be
 * separate shared libraries. Programs do not call these functions. */
#ifndef ROCADE_VERBS_RDMACM_INSIDE_H
#define ROCADE_VERBS_RDMACM_INSIDE_H

#include <stdbool.h>

#include "verbs/device_facts.h"
#include "ucm/backend.h"

/* The server of rdma_cm for this process: its channels work while a port is open. */
const struct ucm_backend *rocade_rdmacm_backend(void);
/* Returns whether an open port has this name. NULL: whether any port is open. False inside the real
 * libibverbs, which is to find the kernel's devices only. Any thread. */
bool rocade_rdmacm_device(const char *name);
/* Returns whether there is an open port with this index, and its state. Any thread. */
bool rocade_rdmacm_facts(unsigned index, struct device_facts *out);
/* Writes a line of librocade's log. */
void rocade_rdmacm_warn(const char *line);
/* librocade-rdmacm is in the process. */
void rocade_rdmacm_loaded(void);
/* For rocade_rdmacm_check(). reached: whether a call of open() gets to librocade-rdmacm. */
int rocade_rdmacm_order(bool reached);

#endif
