/* SPDX-License-Identifier: BSD-3-Clause */
/* A pair with a connection manager on each side. */
#ifndef ROCADE_TEST_CM_BED_H
#define ROCADE_TEST_CM_BED_H

#include "pair.h"

#include <rocade/cm.h>

#define BED_PORT 7471
#define BED_WAIT_NS UINT64_C(30000000000)

extern struct pair pair;
extern struct rocade_cm *cm_a, *cm_b;
extern struct rocade_cm_listener *listener; /* NULL: closed already */

void
bed_open(const struct pair_conf *conf);
/* Closes both managers and the listener. */
void
bed_close_managers(void);

/* Waits for the next event of a side and expects this type. */
struct rocade_cm_event
bed_event(struct rocade_cm *cm, enum rocade_cm_event_type type);
/* Expects no event on either side. */
void
bed_quiet(void);
uint64_t
bed_stat_of(struct rocade_cm *cm, const char *name);
bool
bed_readable(int fd);

#endif
