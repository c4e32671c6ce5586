/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies of the packets that a daemon moves, as `rocade-dump` writes them. These functions are
 * part of Rocade's programs; no installed library contains them. Pointers must be valid, or NULL where a
 * description allows that. */
#ifndef ROCADE_DUMP_H
#define ROCADE_DUMP_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rocade_dump;

struct rocade_dump_conf {
	uint32_t
		client; /* id, as rocade-status shows it; 0: all that the caller may see */
	uint32_t qpn;   /* a QP of such a client; 0: all */
	uint32_t snap;  /* bytes of a packet, at most; 0: all */
	bool in, out;   /* packets to a client, and from one */
};

struct rocade_dump_packet {
	uint64_t wall_ns; /* CLOCK_REALTIME, of the daemon's pass */
	uint32_t client;
	uint32_t qpn; /* of the client; 0xffffff: multicast */
	bool out;     /* from the client */
	uint32_t
		lost; /* packets lost since the one before, because this program was late */
	uint32_t len;        /* of the packet, an Ethernet frame */
	uint32_t kept;       /* bytes of it at data */
	const uint8_t *data; /* valid until the next call */
};

/*
 * Attaches to the daemon at this socket (NULL: the socket that clients use). Root and the
 * daemon's user get the packets of all clients, other callers those of their own user.
 * Returns 0 or a positive errno value; rocade_error() then describes the failure. EBUSY: another
 * program of the user dumps already, or too many programs do.
 */
int rocade_dump_open(const char *socket, const struct rocade_dump_conf *conf,
	struct rocade_dump **dump);
/* Waits up to ms for a packet. Returns 1; 0: none has come; -1: the daemon has ended. A
 * signal ends the wait. */
int rocade_dump_next(struct rocade_dump *dump, int ms, struct rocade_dump_packet *packet);
/* Returns the daemon's rows of this client and of some with higher ids, an array as "clients" of
 * rocade_status(), which the caller must free(). NULL: there is none, or no memory. */
char *rocade_dump_client(struct rocade_dump *dump, uint32_t id);
/* No packet comes any more, except those that wait already. */
void rocade_dump_stop(struct rocade_dump *dump);
/* Packets lost since the last one that rocade_dump_next() returned; after
 * rocade_dump_stop() only. */
uint32_t rocade_dump_lost(const struct rocade_dump *dump);
void rocade_dump_close(struct rocade_dump *dump);

#ifdef __cplusplus
}
#endif

#endif
