/* SPDX-License-Identifier: BSD-3-Clause */
/* rocade_engine_launch(): EAL worker lcores that run one or more engines. */
#include <errno.h>
#include <sched.h>

#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_pause.h>

#include "verbs/verbs_port.h"

#define LCORE_ENGINES 64

/* The lower half of "list" is the number of engines; 0: this lcore runs none. The upper half
 * is another number after each change. */
#define LIST_CHANGE (UINT64_C(1) << 32)

struct service {
	uint64_t list;
	uint64_t list_run; /* the list of the last pass; written by the lcore */
	struct rocade_engine *engines[LCORE_ENGINES];
};

static struct service services[RTE_MAX_LCORE];
/* Serialises rocade_engine_launch() and rocade_engine_stop(). */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int
lcore_service_run(void *arg)
{
	struct service *s = arg;
	uint64_t list;

	/* Pairs with the releases in lcore_service_add() and lcore_service_remove(). */
	while (list = __atomic_load_n(&s->list, __ATOMIC_ACQUIRE), (uint32_t)list != 0) {
		unsigned moved = 0;

		for (uint32_t i = 0; i < (uint32_t)list; i++) {
			struct rocade_engine *e =
				__atomic_load_n(&s->engines[i], __ATOMIC_RELAXED);

			moved += engine_poll(e->engine);
		}
		/* Pairs with the acquire in lcore_service_remove(). */
		__atomic_store_n(&s->list_run, list, __ATOMIC_RELEASE);
		if (moved == 0)
			rte_pause();
	}
	return 0;
}

static int
lcore_service_add(struct service *s, struct rocade_engine *engine, unsigned lcore)
{
	uint32_t count = (uint32_t)s->list;

	if (count == 0 && rte_eal_get_lcore_state(lcore) != WAIT)
		return rocade_fail(EBUSY, "lcore %u runs something else", lcore);
	if (count == LCORE_ENGINES)
		return rocade_fail(
			EBUSY, "lcore %u runs %d engines already", lcore, LCORE_ENGINES);
	__atomic_store_n(&s->engines[count], engine, __ATOMIC_RELAXED);
	/* Pairs with the acquire in lcore_service_run(). */
	__atomic_store_n(&s->list, s->list + LIST_CHANGE + 1, __ATOMIC_RELEASE);
	if (count == 0 && rte_eal_remote_launch(lcore_service_run, s, lcore) != 0) {
		s->list--;
		return rocade_fail(EBUSY, "lcore %u runs something else", lcore);
	}
	return 0;
}

/* Returns when the lcore no longer runs this engine. */
static void
lcore_service_remove(struct service *s, struct rocade_engine *engine, unsigned lcore)
{
	uint32_t last = (uint32_t)s->list - 1;
	uint32_t i = 0;

	while (s->engines[i] != engine)
		i++;
	__atomic_store_n(&s->engines[i], s->engines[last], __ATOMIC_RELAXED);
	/* Pairs with the acquire in lcore_service_run(). */
	__atomic_store_n(&s->list, s->list + LIST_CHANGE - 1, __ATOMIC_RELEASE);
	if (last == 0) {
		rte_eal_wait_lcore(lcore);
		return;
	}
	/* A pass with the new list has ended, and all later ones use it: a number of passes
	 * would not show that, as a store of this thread may be visible to the lcore later
	 * than a load of it looks. Pairs with the release in lcore_service_run(). */
	while (__atomic_load_n(&s->list_run, __ATOMIC_ACQUIRE) != s->list)
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

	if (arg_missing("engine", engine))
		return EINVAL;
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

	if (arg_missing("engine", engine))
		return EINVAL;
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
