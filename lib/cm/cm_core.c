/* SPDX-License-Identifier: BSD-3-Clause */
/* Creation and timers of the connection manager. */
#include <errno.h>
#include <stdlib.h>

#include "cm/half_open.h"
#include "cm/state.h"

const struct cm_stat_row cm_stat_rows[CM_STAT_COUNT] = {
#define CM_STAT(name, text) {#name, text, false},
#define CM_ERROR(name, text) {#name, text, true},
#define CM_DROP(name, text)
#include "cm/cm_stats.def"
#define CM_STAT(name, text)
#define CM_DROP(name, text) {"drop_" #name, text, CM_DROP_##name != CM_DROP_none},
#include "cm/cm_stats.def"
};

void
cm_conf_default(struct cm_conf *conf)
{
	*conf = (struct cm_conf){
		.max_conns = 4096,
		.response_timeout = 20,
		.packet_life = 18,
		.ack_timeout = 19,
		.mra_timeout = 24,
		.max_retries = 15,
	};
}

static bool
cm_conf_valid(const struct cm_conf *conf)
{
	return conf->max_conns >= 1 && conf->max_conns <= 65536 &&
	       conf->response_timeout <= CM_TIMEOUT_MAX &&
	       conf->packet_life <= CM_TIMEOUT_MAX && conf->ack_timeout <= CM_MRA_MAX &&
	       conf->mra_timeout <= CM_MRA_MAX && conf->max_retries <= 15;
}

int
cm_create(const struct cm_conf *conf, uint64_t now, struct cm **out)
{
	struct cm *cm;

	if (!cm_conf_valid(conf))
		return -EINVAL;
	cm = calloc(1, sizeof(*cm));
	if (cm == NULL)
		return -ENOMEM;
	/* Unused connections cost no memory: calloc() does not touch their pages. */
	cm->conns = calloc(conf->max_conns, sizeof(*cm->conns));
	if (cm->conns == NULL) {
		free(cm);
		return -ENOMEM;
	}
	cm->conf = *conf;
	cm->id_key = random_key_derive(&conf->random, RANDOM_CM_IDS);
	cm->table_key = random_key_derive(&conf->random, RANDOM_CM_TABLES);
	random_numbers_init(&cm->tids, &conf->random, RANDOM_CM_TIDS);
	while (conf->max_conns > 1u << cm->index_bits)
		cm->index_bits++;
	wheel_init(&cm->wheel, now);
	TAILQ_INIT(&cm->spare);
	TAILQ_INIT(&cm->ending);
	half_open_init(cm);
	TAILQ_INIT(&cm->conns_with_events);
	*out = cm;
	return 0;
}

void
cm_destroy(struct cm *cm)
{
	for (unsigned i = 0; i < CM_BUCKETS; i++) {
		while (!LIST_EMPTY(&cm->listeners[i])) {
			struct cm_listener *listener = LIST_FIRST(&cm->listeners[i]);

			LIST_REMOVE(listener, link);
			free(listener);
		}
	}
	free(cm->conns);
	free(cm);
}

static void
conn_timer_fire(struct wheel_timer *timer, uint64_t now, void *arg)
{
	(void)arg;
	conn_timeout(
		(struct cm_conn *)((char *)timer - offsetof(struct cm_conn, timer)), now);
}

/* From tick to tick, so that it can stop between two. */
void
cm_run(struct cm *cm, uint64_t now)
{
	unsigned fired = 0;
	uint64_t next;

	while (fired < CM_TIMERS_BATCH && (next = wheel_next(&cm->wheel)) <= now)
		fired += wheel_advance(&cm->wheel, next, conn_timer_fire, cm);
	if (fired < CM_TIMERS_BATCH)
		(void)wheel_advance(&cm->wheel, now, conn_timer_fire, cm);
}

uint64_t
cm_deadline(const struct cm *cm)
{
	return wheel_next(&cm->wheel);
}

const struct cm_stats *
cm_stats_of(const struct cm *cm)
{
	return &cm->stats;
}

uint32_t
cm_in_use(const struct cm *cm)
{
	return cm->in_use;
}

uint32_t
cm_listeners(const struct cm *cm)
{
	return cm->listener_count;
}
