/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#include <unistd.h>

#include "base/no_cancel.h"
#include "engine/engine_sleep.h"
#include "engine/engine_wake.h"

/* Only the first of several threads writes. */
void RARE
engine_wake_asleep(struct engine *e)
{
	uint64_t one = 1;
	ssize_t written;

	if (__atomic_exchange_n(&e->doorbells.asleep, 0, __ATOMIC_RELAXED) == 0)
		return;
	written = no_cancel_write(e->sleep.wake_fd - 1, &one, sizeof(one));
	(void)written;
}

void
engine_wake(struct engine *e)
{
	engine_wake_if_asleep(e);
}

static void
sleep_fd_close(int *fd)
{
	if (*fd != 0)
		close(*fd - 1);
	*fd = 0;
}

void
engine_wake_close(struct engine *e)
{
	sleep_fd_close(&e->sleep.epoll_fd);
	sleep_fd_close(&e->sleep.wake_fd);
	sleep_fd_close(&e->sleep.timer_fd);
}
