/* SPDX-License-Identifier: BSD-3-Clause */
/* The handlers of commands. Internal to lib/ucm: command.c alone calls them, and they do
 * not call each other. */
#ifndef ROCADE_UCM_UCM_CALL_H
#define ROCADE_UCM_UCM_CALL_H

#include "ucm/ucm_state.h"

/* A command in progress. */
struct ucm_call {
	struct ucm *ucm;
	struct ucm_session *session;
	struct ucm_channel *channel;
	const void *in; /* UCM_MAX bytes, zero behind the command */
	size_t in_len;
	void *out; /* UCM_MAX bytes, zeroed */
	uint64_t now;
};

#define UCM(name, handler, in, least, out) int ucm_do_##handler(struct ucm_call *call);
#define UCM_NO_REPLY(name, handler, in, least)                                           \
	int ucm_do_##handler(struct ucm_call *call);
#include "ucm/commands.def"

#endif
