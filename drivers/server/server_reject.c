/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>

#include "base/base_log.h"
#include "engine/clock.h"
#include "server/peer_process.h"
#include "server/server_reject.h"

#define REJECT_LOG_NS NS_PER_SEC

void
reject_log(struct rocade_daemon *d, const struct ucred *who, const char *why)
{
	uint64_t now = clock_now();
	char text[PEER_PROCESS_TEXT];

	if (d->rejected_ns != 0 && now - d->rejected_ns < REJECT_LOG_NS)
		return;
	d->rejected_ns = now;
	log_warn("client rejected: %s of user %u: %s",
		peer_process_text(who->pid, text, sizeof(text)), (unsigned)who->uid, why);
}

void
reject_version_log(const struct conn *conn, uint32_t version)
{
	const struct ucred who = {.pid = conn->pid, .uid = conn->uid};
	char why[64];

	snprintf(why, sizeof(why), "version %" PRIu32 " of the protocol, expected %d",
		version, SW_PROTO_VERSION);
	reject_log(conn->daemon, &who, why);
}

struct sw_refusal
reject_limit(const struct account *account)
{
	enum account_kind kind;

	if (account == NULL || account->full == 0)
		return (struct sw_refusal){.kind = 0};
	kind = account->full - 1;
	return (struct sw_refusal){.kind = account->full,
		.uid = account->uid,
		.held = account->held[kind],
		.most = accounts_most(account->all, kind)};
}

/* Returns whether the user may be told of one more refused connection. */
static bool
told_take(struct account *account)
{
	uint64_t now = clock_now();
	struct rate *all;

	if (account == NULL || rate_ready_ns(&account->told) > now)
		return false;
	all = account->told.full_ns <= now ? &account->all->told_first
					   : &account->all->told;
	if (rate_ready_ns(all) > now)
		return false;
	rate_take(&account->told, now);
	rate_take(all, now);
	return true;
}

void
reject_conn(struct rocade_daemon *d, int fd, const struct ucred *who,
	struct account *account, int error, const char *why)
{
	const struct sw_reply told = {.magic = SW_PROTO_MAGIC,
		.version = SW_PROTO_VERSION,
		.error = error,
		.refusal = reject_limit(account)};

	if (told_take(account))
		(void)send(fd, &told, SW_REFUSED_LEN, MSG_NOSIGNAL | MSG_DONTWAIT);
	reject_log(d, who, why);
	passed_fds_close(&d->passed, account, fd);
	if (account != NULL)
		account_close(account);
}
