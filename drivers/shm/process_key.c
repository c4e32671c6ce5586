/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/no_cancel.h"
#include "base/random.h"
#include "shm/process_key.h"

/* A page with the key, which is complete when the page is found here. In a child of fork() the page
 * of its parent is here, and empty. That page stays mapped: another thread may read it. */
static struct random_key *published;

static_assert(
	sizeof(struct random_key) == SW_PROCESS_KEY, "the key is random bytes only");

static bool
is_drawn(const struct random_key *page)
{
	return page != NULL && (page->word[0] | page->word[1]) != 0;
}

/* Returns 0 or -errno. */
static int
page_create(struct random_key **out)
{
	struct random_key *page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int rc;

	if (page == MAP_FAILED)
		return -errno;
	rc = madvise(page, sizeof(*page), MADV_WIPEONFORK) == 0 ? 0 : -errno;
	if (rc == 0)
		rc = random_key_draw(page);
	if (rc == 0)
		*out = page;
	else
		munmap(page, sizeof(*page));
	return rc;
}

/* Publishes a page in place of `before`, unless another thread has been first. */
static int
key_draw(struct random_key *before)
{
	struct random_key *page = NULL;
	int state = no_cancel_begin();
	int rc = page_create(&page);

	if (rc == 0 && !__atomic_compare_exchange_n(&published, &before, page, false,
			       __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		munmap(page, sizeof(*page));
	no_cancel_end(state);
	return rc;
}

int
process_key_get(uint8_t key[SW_PROCESS_KEY])
{
	struct random_key *page = __atomic_load_n(&published, __ATOMIC_ACQUIRE);
	int rc = is_drawn(page) ? 0 : key_draw(page);

	if (rc == 0)
		memcpy(key, __atomic_load_n(&published, __ATOMIC_ACQUIRE),
			SW_PROCESS_KEY);
	return rc;
}
