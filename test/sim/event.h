/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ROCADE_SIM_EVENT_H
#define ROCADE_SIM_EVENT_H

#include <infiniband/verbs.h>

struct host;

/* Checks an asynchronous event that was read: may it have come? */
void event_seen(struct host *h, const struct ibv_async_event *event);

#endif
