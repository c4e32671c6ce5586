/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of hostile share. */
#ifndef ROCADE_TEST_HOSTILE_H
#define ROCADE_TEST_HOSTILE_H

#include "shm/session.h"

/* A client that is attached. */
struct me {
	struct session session;
	struct region region;
	struct sw_device device;
	int fds[SW_ATTACH_FDS];
};

uint64_t random_next(void);
bool time_left(void);
/* The time that the command line gives begins, once more. */
void time_begin(void);

/* Whether a call has failed because the daemon refuses the user more. */
bool is_refusal(int rc);
int attach(struct me *me);
/* The same; when the daemon refuses it for a limit it tries again, for 20 s at least. */
int attach_waiting(struct me *me);
void detach(struct me *me);
/* Sends a request that names the device's address twice. */
int daemon_call(struct me *me, uint32_t type, uint32_t qpn, uint32_t dest, uint32_t *out);
void daemon_notify(const struct me *me);

/* Each returns the exit status. hostile_memory.c: in the shared memory. */
int mode_scribble(void);
int mode_liar(void);
int mode_block(void);
int mode_boast(void);
int mode_drain(void);
/* hostile_socket.c: over the sockets. */
int mode_talk(void);
int mode_linger(void);
/* Returns a TCP socket with unread data: its last close waits for an hour, or until *end
 * is closed. */
int lingering_open(int *end);
/* Returns how long the daemon takes to answer a new connection, in ms; -errno: it does not. */
int answer_ms(void);
/* hostile_hoard.c: with what is limited. */
int mode_places(void);
int mode_qpns(void);
int mode_crowd(void);
int mode_flood(void);
int mode_peers(void);
int mode_ports(void);
/* hostile_stop.c: with what the daemon's thread may wait for, or be busy with. */
int mode_linger_pair(void);
int mode_asks(void);
int mode_again(void);
int mode_sockets(void);
int mode_refused(void);
int mode_locked(void);
/* hostile_nests.c: with the kernel's lock for epoll sets in other ones. */
int mode_nests(void);
/* hostile_pair.c: in the memory that it shares with another client. */
int mode_pair(const char *way);

#endif
