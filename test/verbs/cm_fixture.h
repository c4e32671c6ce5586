/* SPDX-License-Identifier: BSD-3-Clause */
/* A pair with a connection manager on each side. */
#ifndef ROCADE_TEST_CM_FIXTURE_H
#define ROCADE_TEST_CM_FIXTURE_H

#include "verbs_pair.h"

#include <rocade/cm.h>

#define CM_PORT 7471

extern struct verbs_pair pair;
extern struct rocade_cm *cm_a, *cm_b;
extern struct rocade_cm_listener *listener; /* NULL: closed already */

void cm_pair_open(const struct verbs_pair_conf *conf);
/* As cm_pair_open(), with this number of QPs in INIT on each side, and a listener at b. */
void cm_pair_listen(unsigned qps);
/* Closes both managers and the listener. */
void cm_managers_close(void);
/* The same, and the pair: a teardown. */
int cm_pair_close(void **state);

/* Waits for the next event of a side and expects this type. */
struct rocade_cm_event cm_expect_event(
	struct rocade_cm *cm, enum rocade_cm_event_type type);
/* Expects no event on either side. */
void cm_expect_no_event(void);
uint64_t cm_stat(struct rocade_cm *cm, const char *name);

#endif
