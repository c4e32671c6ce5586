/* SPDX-License-Identifier: BSD-3-Clause */
#include "ucm/backend.h"

static const struct ucm_backend *current;

void
ucm_backend_set(const struct ucm_backend *backend)
{
	__atomic_store_n(&current, backend, __ATOMIC_RELEASE);
}

/* Pairs with the release above. */
const struct ucm_backend *
ucm_backend_get(void)
{
	return __atomic_load_n(&current, __ATOMIC_ACQUIRE);
}
