/* SPDX-License-Identifier: BSD-3-Clause */
/* rocade_engine_launch(): EAL worker lcores that run one or more engines. */
#include <errno.h>
#include <sched.h>

#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_pause.h>

#include "verbs/verbs_port.h"

#define LCORE_ENGINES 64

struct service {
	uint32_t count;  /* 0: this lcore runs no engine */
	uint64_t passes; /* passes over the list; written by the lcore */
	struct rocade_engine *engines[LCORE_ENGINES];
};

static struct service services[RTE_MAX_LCORE];
/* Serialises rocade_engine_launch() and rocade_engine_stop(). */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int
lcore_service_run(void *arg)
{
	struct service *s = arg;
	uint32_t count;

	/* Pairs with the releases in lcore_service_add() and lcore_service_remove(). */
	while ((count = __atomic_load_n(&s->count, __ATOMIC_ACQUIRE)) != 0) {
		unsigned moved = 0;

		for (uint32_t i = 0; i < count; i++) {
			struct rocade_engine *e =
				__atomic_load_n(&s->engines[i], __ATOMIC_RELAXED);

			moved += engine_poll(e->engine);
		}
		/* Pairs with the acquire in lcore_service_remove(). */
		__atomic_store_n(&s->passes, s->passes + 1, __ATOMIC_RELEASE);
		if (moved == 0)
			rte_pause();
	}
	return 0;
}

static int
lcore_service_add(struct service *s, struct rocade_engine *engine, unsigned lcore)
{
	if (s->count == 0 && rte_eal_get_lcore_state(lcore) != WAIT)
		return rocade_fail(EBUSY, "lcore %u runs something else", lcore);
	if (s->count == LCORE_ENGINES)
		return rocade_fail(
			EBUSY, "lcore %u runs %d engines already", lcore, LCORE_ENGINES);
	__atomic_store_n(&s->engines[s->count], engine, __ATOMIC_RELAXED);
	__atomic_store_n(&s->count, s->count + 1, __ATOMIC_RELEASE);
	if (s->count == 1 && rte_eal_remote_launch(lcore_service_run, s, lcore) != 0) {
		s->count = 0;
		return rocade_fail(EBUSY, "lcore %u runs something else", lcore);
	}
	return 0;
}

/* Returns when the lcore no longer runs this engine. */
static void
lcore_service_remove(struct service *s, struct rocade_engine *engine, unsigned lcore)
{
	uint32_t last = s->count - 1;
	uint32_t i = 0;
	uint64_t passes;

	while (s->engines[i] != engine)
		i++;
	__atomic_store_n(&s->engines[i], s->engines[last], __ATOMIC_RELAXED);
	__atomic_store_n(&s->count, last, __ATOMIC_RELEASE);
	if (last == 0) {
		rte_eal_wait_lcore(lcore);
		return;
	}
	/* The present pass may use the old list. The next one uses the new list. */
	passes = __atomic_load_n(&s->passes, __ATOMIC_ACQUIRE);
	while (__atomic_load_n(&s->passes, __ATOMIC_ACQUIRE) - passes < 2)
		sched_yield();
}

static void
launched_set(struct rocade_engine *engine, bool launched, unsigned lcore)
{
	struct rocade_port *port = engine->port;

	pthread_mutex_lock(&port->lock);
	engine->launched = launched;
	engine->lcore = lcore;
	port->launched += launched ? 1u : -1u;
	pthread_mutex_unlock(&port->lock);
}

EXPORT int
rocade_engine_launch(struct rocade_engine *engine, unsigned lcore)
{
	int err;

	if (rte_lcore_count() == 0)
		return rocade_fail(EINVAL, "EAL is not initialised: there are no lcores");
	if (lcore >= RTE_MAX_LCORE || !rte_lcore_is_enabled(lcore))
		return rocade_fail(EINVAL, "there is no lcore %u", lcore);
	if (lcore == rte_get_main_lcore())
		return rocade_fail(
			EINVAL, "lcore %u is the main lcore: expected a worker", lcore);
	pthread_mutex_lock(&lock);
	if (engine->launched)
		err = rocade_fail(
			EBUSY, "lcore %u runs this engine already", engine->lcore);
	else
		err = lcore_service_add(&services[lcore], engine, lcore);
	if (err == 0)
		launched_set(engine, true, lcore);
	pthread_mutex_unlock(&lock);
	return err;
}

EXPORT int
rocade_engine_stop(struct rocade_engine *engine)
{
	int err = 0;

	pthread_mutex_lock(&lock);
	if (!engine->launched) {
		err = rocade_fail(EINVAL, "no lcore runs this engine");
	} else {
		lcore_service_remove(&services[engine->lcore], engine, engine->lcore);
		launched_set(engine, false, 0);
	}
	pthread_mutex_unlock(&lock);
	return err;
}
