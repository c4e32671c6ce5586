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
	return conf->max_conns >= 1 && conf->max_conns <= CM_CONNS_MAX &&
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
	cm->conf = *conf;
	while (conf->max_conns > 1u << cm->index_bits)
		cm->index_bits++;
	cm->bucket_mask = RTE_MAX(1u << cm->index_bits, (unsigned)CM_BUCKETS) - 1;
	/* Unused connections cost no memory: calloc() does not touch their pages. */
	cm->conns = calloc(conf->max_conns, sizeof(*cm->conns));
	cm->by_id = calloc(cm->bucket_mask + 1, sizeof(*cm->by_id));
	cm->by_qpn = calloc(cm->bucket_mask + 1, sizeof(*cm->by_qpn));
	if (cm->conns == NULL || cm->by_id == NULL || cm->by_qpn == NULL) {
		cm_destroy(cm);
		return -ENOMEM;
	}
	cm->id_key = random_key_derive(&conf->random, RANDOM_CM_IDS);
	cm->table_key = random_key_derive(&conf->random, RANDOM_CM_TABLES);
	random_numbers_init(&cm->tids, &conf->random, RANDOM_CM_TIDS);
	wheel_init(&cm->wheel, now);
	TAILQ_INIT(&cm->spare);
	TAILQ_INIT(&cm->ending);
	half_open_init(cm);
	TAILQ_INIT(&cm->conns_with_events);
	*out = cm;
	return 0;
}

static void
listeners_free(struct cm_listeners *listeners)
{
	struct cm_listener *listener;

	while ((listener = LIST_FIRST(listeners)) != NULL) {
		LIST_REMOVE(listener, link);
		free(listener);
	}
}

void
cm_destroy(struct cm *cm)
{
	for (unsigned i = 0; i < CM_BUCKETS; i++)
		listeners_free(&cm->listeners[i]);
	listeners_free(&cm->closed);
	free(cm->conns);
	free(cm->by_id);
	free(cm->by_qpn);
	free(cm);
}

static void
conn_timer_fire(struct wheel_timer *timer, uint64_t now, void *arg)
{
	(void)arg;
	conn_timeout(
		(struct cm_conn *)((char *)timer - offsetof(struct cm_conn, timer)), now);
}

void
cm_run(struct cm *cm, uint64_t now)
{
	static const struct wheel_budget budget = {CM_TIMER_MOVES, CM_TIMERS_BATCH};

	(void)wheel_advance_some(&cm->wheel, now, &budget, conn_timer_fire, cm);
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

size_t
cm_conn_size(void)
{
	return sizeof(struct cm_conn) + 2 * sizeof(struct conn_bucket);
}
