/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * --peer: the peers of a port. Each has the same number of QPs, those of the first peer come first. Behind
 * an address @N says which of the peers of that end this one is, so that both ends know the QPNs of the
 * other. A list that has an address of this end, too, is the list of all ends: each finds its place in it.
 */
#ifndef TESTPMD_PEERS_H
#define TESTPMD_PEERS_H

#include "testpmd_conf.h"

#define PEERS_VALID                                                                      \
	"IPv4 or IPv6 addresses that hosts can have, each once, up to 64, separated by " \
	"commas, with @0 to @63 behind one if this end is not the first of its peers: "  \
	"192.0.2.2,192.0.2.3@1"

/* Adds to --peer of the port, or begins it. Returns false, with the port unchanged, if the text is
 * invalid. */
bool peers_add(struct port_conf *pc, const char *text);
/* Sets the only peer. */
void peers_replace(struct port_conf *pc, const char *address);
/* After a change of --addr. */
void peers_set(struct port_conf *pc);
/* Returns which rule of a list of all ends an entry of --peer breaks, and copies the entry. NULL: none. */
const char *peers_list_wrong(const struct port_conf *pc, char entry[PEER_TEXT_MAX]);
/* By the bytes of message msg to the QP with this QPN: which place this end has at its sender, if each end
 * has the QPs of this one for the other; -1: none. back: of verify_flow(). */
int peers_place_of(const struct conf *conf, const struct port_conf *pc, uint32_t qpn,
	bool back, uint64_t msg, const uint8_t *data, uint64_t len);
/* Jain's fairness index of n numbers: 1 if all are the same, 1 / n if all but one are 0; 0 if all are 0,
 * which have none. */
double peers_fairness(const uint64_t *values, unsigned n);

#endif
