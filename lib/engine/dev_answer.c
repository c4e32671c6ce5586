/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
/* What the engines of a device share to wait for answers (engine_answer.c). */
#include <errno.h>
#include <stdlib.h>

#include "base/base_alloc.h"
#include "base/base_log.h"
#include "engine/dev_control.h"
#include "port/rounds.h"

#define WAIT_ENV "ROCADE_PAIR_WAIT" /* seconds */
#define WAIT_MAX 3600

static uint64_t
wait_ns_read(void)
{
	const char *text = getenv(WAIT_ENV);
	unsigned long seconds = ANSWER_WAIT_NS / NS_PER_SEC;
	char *end;

	if (text != NULL && text[0] >= '0' && text[0] <= '9') {
		errno = 0;
		seconds = strtoul(text, &end, 10);
		if (*end != '\0' || errno != 0)
			seconds = WAIT_MAX + 1;
	} else if (text != NULL) {
		seconds = WAIT_MAX + 1;
	}
	if (seconds > WAIT_MAX) {
		log_err("%s: invalid value '%s': expected seconds, 0 to %d", WAIT_ENV,
			text, WAIT_MAX);
		return ANSWER_WAIT_NS;
	}
	return seconds * NS_PER_SEC;
}

static size_t
waits_size(const struct dev *dev)
{
	return ((size_t)dev->qps.pool.mask + 1) * sizeof(struct answer_wait);
}

int
dev_answers_create(struct dev *dev)
{
	uint32_t count = dev->port.queue_count;

	dev->answer_wait_ns = wait_ns_read();
	dev->rounds = alloc_get(&alloc_plain, "rounds", rounds_size(count));
	if (dev->rounds == NULL)
		return -ENOMEM;
	dev->rounds->count = count;
	/* Few QPs use theirs. */
	dev->answer_wait = alloc_get(&alloc_demand, "answers", waits_size(dev));
	return dev->answer_wait != NULL ? 0 : -ENOMEM;
}

void
dev_answers_destroy(struct dev *dev)
{
	alloc_put(&alloc_plain, dev->rounds, rounds_size(dev->port.queue_count));
	alloc_put(&alloc_demand, dev->answer_wait, waits_size(dev));
}
