/* SPDX-License-Identifier: BSD-3-Clause */
/* rocade-status --flight: the last events of a client's QPs. */
#ifndef STATUS_QP_EVENTS_H
#define STATUS_QP_EVENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct flight_conf {
	uint32_t client; /* 0: none */
	uint32_t qpn;    /* 0: all of the client */
};

/* Reads "CLIENT[:QPN]". Returns false if it is something else. */
bool flight_conf_read(struct flight_conf *conf, const char *value);

/* Prints the events. Returns whether there were any; otherwise *why says what is wrong. */
bool flight_show(
	FILE *to, const char *socket, const struct flight_conf *conf, const char **why);

#endif
