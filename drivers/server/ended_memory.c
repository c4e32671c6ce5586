/* SPDX-License-Identifier: BSD-3-Clause */
#include <sys/mman.h>

#include "base/base_alloc.h"
#include "server/ended_memory.h"

struct ended_mapping {
	TAILQ_ENTRY(ended_mapping) link;
	struct mapping mapping;
	struct account *account;
	uint32_t kib;
	bool charged; /* for the descriptor */
};

void
ended_memory_init(struct ended_memory *all, struct passed_fds *passed)
{
	TAILQ_INIT(&all->mappings);
	all->due_ns = 0;
	all->passed = passed;
}

static void
ended_mapping_free(struct ended_memory *all, struct ended_mapping *m)
{
	TAILQ_REMOVE(&all->mappings, m, link);
	munmap(m->mapping.at, m->mapping.size);
	account_give(m->account, ACCOUNT_memory_kib, m->kib);
	account_give(m->account, ACCOUNT_descriptors, m->charged);
	passed_fds_close_given(all->passed, m->account, m->mapping.fd);
	account_close(m->account);
	alloc_put(&alloc_plain, m, sizeof(*m));
}

void
ended_memory_free(struct ended_memory *all)
{
	while (!TAILQ_EMPTY(&all->mappings))
		ended_mapping_free(all, TAILQ_FIRST(&all->mappings));
}

void
ended_memory_add(struct ended_memory *all, const struct mapping *mapping,
	struct account *account, uint32_t kib)
{
	struct ended_mapping *m = NULL;

	if (mapping->at != NULL)
		m = alloc_get(&alloc_plain, "ended memory", sizeof(*m));
	if (m == NULL) {
		if (mapping->at != NULL)
			munmap(mapping->at, mapping->size);
		account_give(account, ACCOUNT_memory_kib, kib);
		passed_fds_close_given(all->passed, account, mapping->fd);
		return;
	}
	*m = (struct ended_mapping){.mapping = *mapping, .account = account, .kib = kib};
	m->charged = mapping->fd >= 0 && account_take(account, ACCOUNT_descriptors, 1);
	account->holders++;
	TAILQ_INSERT_TAIL(&all->mappings, m, link);
}

bool
ended_memory_take(struct ended_memory *all, struct account *account, uint32_t kib)
{
	struct ended_mapping *m, *next;
	unsigned freed = 0;

	for (m = TAILQ_FIRST(&all->mappings);
		m != NULL && freed < ENDED_MEMORY_TAKE &&
		!account_has_room(account, ACCOUNT_memory_kib, kib);
		m = next) {
		next = TAILQ_NEXT(m, link);
		if (m->account == account) {
			ended_mapping_free(all, m);
			freed++;
		}
	}
	return account_take(account, ACCOUNT_memory_kib, kib);
}

void
ended_memory_run(struct ended_memory *all, uint64_t now)
{
	if (likely(TAILQ_EMPTY(&all->mappings)) || now < all->due_ns)
		return;
	ended_mapping_free(all, TAILQ_FIRST(&all->mappings));
	all->due_ns = now + ENDED_MEMORY_NS;
}

uint64_t
ended_memory_deadline(const struct ended_memory *all)
{
	return TAILQ_EMPTY(&all->mappings) ? TIME_NEVER : all->due_ns;
}
