/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#include <errno.h>

#include "base/base_alloc.h"
#include "engine/gsi.h"

static const uint64_t never = TIME_NEVER;

void
gsi_user_clear(struct gsi *gsi)
{
	gsi->user = (struct gsi_user){.due = &never};
	gsi->unresolved_count = 0;
	gsi->retry_ns = TIME_NEVER;
}

int
gsi_create(const struct random_key *random, bool ext_off, uint32_t ext_hosts,
	struct gsi **out)
{
	struct gsi *gsi = alloc_get(&alloc_plain, "gsi", sizeof(*gsi));

	if (gsi == NULL)
		return -ENOMEM;
	if (ext_query_create_sized(random, ext_off, ext_hosts, &gsi->ext) != 0) {
		alloc_put(&alloc_plain, gsi, sizeof(*gsi));
		return -ENOMEM;
	}
	pthread_mutex_init(&gsi->ext_lock, NULL);
	pthread_mutex_init(&gsi->users_lock, NULL);
	gsi->ext_due = TIME_NEVER;
	gsi_user_clear(gsi);
	*out = gsi;
	return 0;
}

void
gsi_destroy(struct gsi *gsi)
{
	if (gsi == NULL)
		return;
	assert(gsi->user.rx == NULL);
	ext_query_destroy(gsi->ext);
	pthread_mutex_destroy(&gsi->ext_lock);
	pthread_mutex_destroy(&gsi->users_lock);
	alloc_put(&alloc_plain, gsi, sizeof(*gsi));
}
