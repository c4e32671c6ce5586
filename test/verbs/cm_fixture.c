/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>

#include "await.h"
#include "case.h"
#include "cm_fixture.h"

struct verbs_pair pair;
struct rocade_cm *cm_a, *cm_b;
struct rocade_cm_listener *listener;

void
cm_pair_open(const struct verbs_pair_conf *conf)
{
	pair_open(&pair, conf);
	assert_int_equal(rocade_cm_open(pair.a.context, &cm_a), 0);
	assert_int_equal(rocade_cm_open(pair.b.context, &cm_b), 0);
}

void
cm_pair_listen(unsigned qps)
{
	cm_pair_open(&(struct verbs_pair_conf){.qps = qps, .unconnected = true});
	assert_int_equal(rocade_cm_listen(cm_b, CM_PORT, 4, "listener", &listener), 0);
	for (unsigned i = 0; i < qps; i++) {
		pair_to_init(pair.a.qp[i]);
		pair_to_init(pair.b.qp[i]);
	}
}

void
cm_managers_close(void)
{
	if (listener != NULL)
		rocade_cm_unlisten(listener);
	listener = NULL;
	rocade_cm_close(cm_a);
	rocade_cm_close(cm_b);
}

int
cm_pair_close(void **state)
{
	cm_managers_close();
	pair_close(&pair);
	return 0;
}

struct rocade_cm_event
cm_expect_event(struct rocade_cm *cm, enum rocade_cm_event_type type)
{
	struct rocade_cm_event e;

	if (!awaited_by(pair_poll(&pair), rocade_cm_next_event(cm, &e) == 0))
		fail_msg("waited in vain for %s", rocade_cm_event_name(type));
	assert_string_equal(rocade_cm_event_name(e.type), rocade_cm_event_name(type));
	assert_int_equal(e.type, type);
	return e;
}

void
cm_expect_no_event(void)
{
	struct rocade_cm_event e;

	pair_drain(&pair);
	assert_int_equal(rocade_cm_next_event(cm_a, &e), EAGAIN);
	assert_int_equal(rocade_cm_next_event(cm_b, &e), EAGAIN);
}

uint64_t
cm_stat(struct rocade_cm *cm, const char *name)
{
	struct rocade_stat rows[64];
	unsigned n = rocade_cm_stats(cm, rows, 64);

	for (unsigned i = 0; i < n; i++)
		if (strcmp(rows[i].name, name) == 0)
			return rows[i].value;
	fail_msg("no counter %s", name);
	return 0;
}
