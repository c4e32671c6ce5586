/* SPDX-License-Identifier: BSD-3-Clause */
/* rocade_daemon_conf.impair: the daemon impairs the queues of its port. Without a port it tells its
 * clients to impair what they send, because packets of a pair do not come by the daemon. */
#ifndef ROCADE_SERVER_IMPAIR_H
#define ROCADE_SERVER_IMPAIR_H

#include "base/json_out.h"
#include "server/server.h"

/* Returns 0, or EINVAL with the error set. */
int server_impair_check(const struct rocade_daemon_conf *conf);
/* Wraps the queues of conf->port, which the daemon does not use yet. Returns 0, or ENOMEM with the error
 * set. */
int server_impair_open(struct rocade_daemon *d, const struct rocade_daemon_conf *conf);
/* The threads of the switch use the wrappers from now on. None of them runs yet. */
void server_impair_begin(struct rocade_daemon *d);
/* No thread runs any more. Sends what is held back. */
void server_impair_end(struct rocade_daemon *d);

/* Prints the rates, and what has been impaired so far: by the port, or by the clients that the asker may
 * see and those that have ended. */
void server_impair_print(struct json_out *j, const struct conn *asker);

#endif
