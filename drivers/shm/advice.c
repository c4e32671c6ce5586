/* SPDX-License-Identifier: BSD-3-Clause */
/* A line of advice at the end of a process whose retries were exceeded, or of which a call was
 * refused with EINVAL, or because of a queue that stays full. ROCADE_OFF=advice turns it off. */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/off.h"
#include "base/base_log.h"
#include "shm/shm.h"
#include "verbs/refusal.h"

static struct {
	pid_t pid; /* of the process that has opened a port. A forked child is another */
	bool local;
	uint64_t retries, rnr_retries; /* of ports that are closed */
} state;

void
advice_port_opened(bool local)
{
	pid_t pid = getpid();

	if (state.pid != 0 && state.pid != pid) {
		state.retries = state.rnr_retries = 0;
		refusal_reset();
	}
	state.pid = pid;
	state.local = local;
}

static void
shm_port_count(struct shm *shm, void *arg)
{
	struct port_stats stats;

	(void)arg;
	dev_stats(shm->dev, &stats);
	state.retries += stats.retries_exceeded;
	state.rnr_retries += stats.rnr_retries_exceeded;
}

void
advice_port_closed(struct shm *shm)
{
	if (!shm->dead)
		shm_port_count(shm, NULL);
}

static const char *
retries_advice(void)
{
	if (state.local)
		return "its program has ended or does not run (rocade-status shows the "
		       "daemon's clients)";
	return "as root, `rocade-doctor --peer ADDRESS` looks at the path to it";
}

static void
advice_print(void)
{
	static const char off[] = OFF_ENV "=advice turns this line off";
	struct refusal refusal;

	refusal_get(&refusal);
	if (state.retries != 0)
		log_warn("a peer did not answer (IBV_WC_RETRY_EXC_ERR, %" PRIu64
			 " QPs): %s; %s",
			state.retries, retries_advice(), off);
	else if (state.rnr_retries != 0)
		log_warn(
			"a peer had no receive posted (IBV_WC_RNR_RETRY_EXC_ERR, %" PRIu64
			" QPs): post receives before the peer sends, or set rnr_retry "
			"to 7; %s",
			state.rnr_retries, off);
	else if (refusal.call != NULL)
		log_warn("%s returned %s: %s; %s", refusal.call, refusal.err,
			refusal.reason != NULL ? refusal.reason
					       : "docs/verbs.md has the reasons",
			off);
}

static __attribute__((destructor)) void
process_ends(void)
{
	if (state.pid != getpid() || is_off(OFF_ADVICE))
		return;
	shm_list_each(shm_port_count, NULL);
	advice_print();
}
