/* SPDX-License-Identifier: BSD-3-Clause */
/* The route of a client's packet. Called by sw.c. */
#ifndef ROCADE_SWITCH_ROUTE_H
#define ROCADE_SWITCH_ROUTE_H

#include "switch/sw.h"

/* Checks and forwards the packet. Returns false if it is to be offered again later. */
bool sw_forward(struct sw_client *from, const struct ring_desc *desc);

#endif
