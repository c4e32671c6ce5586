/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>

#include "stacks.h"

/* %s stands for the device's name. */
static const struct {
	const char *name;
	const char *value;
} variables[] = {
	/* Otherwise UCX chooses TCP or shared memory where it expects them to be
	 * faster. */
	{"UCX_NET_DEVICES", "%s:1"},
	{"UCX_TLS", "^shm"},
	{"NCCL_IB_HCA", "=%s"},
};

void
stacks_env_set(const char *device)
{
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		char value[128];

		snprintf(value, sizeof(value), variables[i].value, device);
		setenv(variables[i].name, value, 0);
	}
}
