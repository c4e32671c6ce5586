/* SPDX-License-Identifier: BSD-3-Clause */
/* The pipe of an event queue, for its tests. */
#ifndef ROCADE_TEST_EVENT_PIPE_H
#define ROCADE_TEST_EVENT_PIPE_H

#include <errno.h>
#include <unistd.h>

#include "queue/event_queue.h"

/* Fills the pipe as unread events would. Returns how many bytes it has. */
static inline unsigned
pipe_fill(const struct event_queue *q)
{
	unsigned bytes = 0;

	while (write(q->own_fd, "1", 1) == 1)
		bytes++;
	assert_int_equal(errno, EAGAIN);
	return bytes;
}

static inline void
bytes_take(const struct event_queue *q, unsigned n)
{
	uint8_t byte;

	for (unsigned i = 0; i < n; i++)
		assert_int_equal(read(q->fd, &byte, 1), 1);
}

#endif
