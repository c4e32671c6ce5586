/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses and ports of programs: conversion, ownership, binding. Internal to lib/ucm.
 * May be called by every file of it; calls only port_wait.c. */
#ifndef ROCADE_UCM_UCM_ADDR_H
#define ROCADE_UCM_UCM_ADDR_H

#include "ucm/ucm_state.h"

/* IDs that may have one port, at addresses that differ or by RDMA_OPTION_ID_REUSEADDR: a command
 * looks at all of them. */
#define UCM_PORT_IDS 1024

/* Reads an address that a program gives. Unless it is a wildcard, its name becomes that of its GID,
 * which is what the peer sees. Returns 0 or -EAFNOSUPPORT. */
int ucm_addr_read(struct ucm *ucm, const void *sa, size_t len, struct ucm_addr *out);
/* Builds the socket address of a GID and a port. */
void ucm_addr_make(struct ucm_addr *out, const uint8_t gid[16], uint16_t port);
uint16_t ucm_addr_port(const struct ucm_addr *addr);
/* Returns the device with this address, or NULL. */
struct ucm_device *ucm_device_of(const struct ucm *ucm, const uint8_t gid[16]);
/* The ID is bound to an address of the device, or, if that is NULL, of none. */
void ucm_id_set_device(struct ucm_id *id, struct ucm_device *device);
/* Returns whether both are addresses of one device. Packets between them stay in this host. */
bool ucm_is_local(const struct ucm *ucm, const uint8_t sgid[16], const uint8_t dgid[16]);
uint64_t ucm_service_id(uint16_t ps, uint16_t port);

/* Binds to the address and its port; port 0: to a free one. Returns 0, -EADDRINUSE
 * (another ID has the port, UCM_PORT_IDS share it, another user has listened there until a moment
 * ago, or the user has too many ports), -EADDRNOTAVAIL, or -EACCES (port below 1024, and the user is
 * not privileged). */
int ucm_bind(
	struct ucm *ucm, struct ucm_id *id, const struct ucm_addr *addr, uint64_t now);
/* If the ID listens, other users do not get the port for a while. */
void ucm_unbind(struct ucm_id *id, uint64_t now);
/* Returns 0 if the ID, which is bound, may listen: no other ID shares the port with it.
 * Else -EADDRINUSE. */
int ucm_listen_check(struct ucm *ucm, const struct ucm_id *id);
/* Returns whether the ID, if bound to the right port, receives requests to gid. */
bool ucm_addr_serves(const struct ucm_id *id, const uint8_t gid[16]);
/* Returns the bucket of IDs that are bound to the port (and to ports with the same
 * hash). */
struct ucm_port_bucket *ucm_port_bucket(struct ucm *ucm, uint16_t port);

/* Fills in the attributes of packets to the peer of the ID. Returns 0, or -EADDRNOTAVAIL
 * if the address of the ID was removed. */
int ucm_ah_fill(const struct ucm_id *id, struct ib_uverbs_ah_attr *ah);

#endif
