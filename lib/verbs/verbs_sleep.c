/* SPDX-License-Identifier: BSD-3-Clause */
/* rocade_engine_fd(), rocade_engine_arm(), rocade_engine_disarm(). */
#include <errno.h>
#include <string.h>

#include "base/no_cancel.h"
#include "engine/engine_sleep.h"
#include "engine/manual_progress.h"
#include "verbs/verbs_port.h"

static int
launched_check(struct rocade_engine *engine)
{
	bool launched;

	pthread_mutex_lock(&engine->port->lock);
	launched = engine->launched;
	pthread_mutex_unlock(&engine->port->lock);
	return launched
		       ? rocade_fail(EBUSY, "lcore %u runs the engine: it does not sleep",
				 engine->lcore)
		       : 0;
}

EXPORT int
rocade_engine_fd(struct rocade_engine *engine, int *fd)
{
	int err, state;

	if (arg_missing("engine", engine) || arg_missing("fd", fd))
		return EINVAL;
	err = launched_check(engine);
	if (err != 0)
		return err;
	if (engine_is_manual(engine->engine))
		return rocade_fail(EOPNOTSUPP, "a thread of Rocade runs the engine");
	state = no_cancel_begin();
	pthread_mutex_lock(&engine->port->lock);
	err = -engine_sleep_open(engine->engine, fd);
	pthread_mutex_unlock(&engine->port->lock);
	no_cancel_end(state);
	return err == 0 ? 0
			: rocade_fail(err, "no descriptor for the engine: %s",
				  err == EOPNOTSUPP ? "the kernel lacks membarrier(2)"
						    : strerror(err));
}

EXPORT int
rocade_engine_arm(struct rocade_engine *engine)
{
	int err;

	if (arg_missing("engine", engine))
		return EINVAL;
	err = launched_check(engine);
	if (err != 0)
		return err;
	if (!engine_sleep_is_open(engine->engine))
		return rocade_fail(
			EINVAL, "the engine has no descriptor: call rocade_engine_fd()");
	return engine_sleep_begin(engine->engine) ? 0 : EAGAIN;
}

EXPORT void
rocade_engine_disarm(struct rocade_engine *engine)
{
	if (!arg_missing("engine", engine) && engine_sleep_is_open(engine->engine))
		engine_sleep_end(engine->engine);
}
