/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients that are refused: the log says so, and they are told for which limit. Thread 0. */
#ifndef ROCADE_SERVER_SERVER_REJECT_H
#define ROCADE_SERVER_SERVER_REJECT_H

#include <sys/socket.h>

#include "server/server.h"

/* Logs at most one line in a second: a client may try again and again. */
void reject_log(struct rocade_daemon *d, const struct ucred *who, const char *why);
/* Logs both versions in the same way: an older client may print only "Protocol not supported". */
void reject_version_log(const struct conn *conn, uint32_t version);
/* Returns the limit that was reached since account->full was reset, or kind 0. account: may be NULL. */
struct sw_refusal reject_limit(const struct account *account);
/* Tells the client why, if its user, and all users, have not been told too often: what the client leaves
 * unread stays the daemon's memory after the close. Closes its socket and a reference to the account,
 * which is NULL without memory. Does not block: it is one short message for a connection, and its user is charged for the
 * time. error: an errno value. */
void reject_conn(struct rocade_daemon *d, int fd, const struct ucred *who,
	struct account *account, int error, const char *why);

#endif
