/* SPDX-License-Identifier: BSD-3-Clause */
/* The server of rdma_cm for this process: the daemon, reached through drivers/shm. A
 * driver registers it once, before main(). The emulation of /dev/infiniband/rdma_cm
 * (drivers/preload) sends commands to it. */
#ifndef ROCADE_UCM_BACKEND_H
#define ROCADE_UCM_BACKEND_H

#include "ucm/abi.h"

/* Names a channel at the server. generation is that of the connection to the server:
 * fork() and reconnection end it, and the token is stale. */
struct ucm_token {
	uint32_t number;
	uint32_t generation;
};

/* The functions may be called from any thread, and are no cancellation points. */
struct ucm_backend {
	/* Opens a channel. fd, the program's end of ucm_sockets_create(), is readable while the
	 * channel has events, each of which is an edge, and reports a hang-up when the server ends.
	 * Its last close() closes the channel. Returns 0, -ENOENT or -ECONNREFUSED if there is no server, or another
	 * -errno. */
	int (*open)(struct ucm_token *token, int *fd);
	/* Executes a command of ucm/abi.h. out has room for UCM_MAX bytes. On return, fd
	 * no longer signals events that the channel has no more, whatever took them. Returns 0, or
	 * the -errno with which the program's write() fails; -ENODEV if the server has
	 * ended. */
	int (*command)(const struct ucm_token *token, int fd, uint32_t cmd,
		const void *in, size_t in_len, void *out, size_t *out_len);
	/* The server whose device has this index has not replied to this process in time, and counts
	 * as ended. NULL: it is in this process. */
	void (*lost)(uint32_t device_index);
};

/* Makes the two sockets of a channel: the server's end, and the program's, which is never writable. A
 * message from the server wakes all threads that wait in recv(2) at the other end. Returns 0 or
 * -errno. */
int ucm_sockets_create(int ends[2]);
/* For the server: signals an event by its number, of struct ucm_ops. */
void ucm_wake_send(int end, uint32_t number);
/* For the program: takes the signals up to a number, by struct ucm_result. */
void ucm_wakes_take(int fd, uint32_t upto, bool pending);

/* The emulation sets what makes the channels of a generation report a hang-up. The backend has that done when
 * the server counts as ended and may not have closed its ends. */
void ucm_disconnect_set(void (*disconnect)(uint32_t generation));
void ucm_channels_disconnect(uint32_t generation);

void ucm_backend_set(const struct ucm_backend *backend);
/* Returns NULL if no backend is registered. */
const struct ucm_backend *ucm_backend_get(void);

#endif
