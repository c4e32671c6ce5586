/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/base_alloc.h"
#include "base/rate.h"
#include "port/ext_query.h"
#include "wire/ext_mad.h"
#include "wire/extensions.h"

/* When a query is sent, since the first time. */
static const uint64_t try_ns[EXT_QUERY_TRIES] = {
	0, 1 * NS_PER_MS, 30 * NS_PER_MS, 1000 * NS_PER_MS};

/* Another host, as seen from one of our addresses. */
struct ext_host {
	LIST_ENTRY(ext_host) link;
	TAILQ_ENTRY(ext_host) age_link; /* of q->open or q->known */
	uint8_t ours[16];
	uint8_t theirs[16];
	bool open;
	uint8_t tries; /* queries sent; each has the same transaction ID */
	uint64_t tid;
	uint64_t since_ns; /* open: of the first query; else when the query ended */
	uint64_t asked_ns; /* open: when ext_query_ask() was called */
	uint32_t extensions;
};

TAILQ_HEAD(ext_hosts, ext_host);
LIST_HEAD(ext_bucket, ext_host);

/* An answer to be sent. */
struct ext_reply {
	uint8_t ours[16];
	uint8_t theirs[16];
	uint64_t tid;
};

struct ext_query {
	bool off;
	struct random_key table_key;
	struct random_numbers tids;
	struct ext_hosts open, known; /* oldest first */
	uint32_t open_count;
	uint32_t host_count;
	uint32_t generation;
	uint64_t deadline_ns;
	struct rate send, answer;
	uint32_t reply_first, reply_count;
	struct ext_reply replies[EXT_QUERY_ANSWER_BURST];
	uint32_t size; /* number of hosts, and of buckets */
	struct ext_bucket *buckets;
	struct ext_host *hosts;
};

/* Control path. */

int
ext_query_create(const struct random_key *random, bool off, struct ext_query **out)
{
	return ext_query_create_sized(random, off, EXT_QUERY_HOSTS, out);
}

int
ext_query_create_sized(
	const struct random_key *random, bool off, uint32_t hosts, struct ext_query **out)
{
	struct ext_query *q = alloc_get(&alloc_plain, "ext_query", sizeof(*q));

	if (q == NULL)
		return -ENOMEM;
	/* Not alloc_get(), which would touch the pages of all hosts. */
	q->buckets = calloc(hosts, sizeof(*q->buckets));
	q->hosts = calloc(hosts, sizeof(*q->hosts));
	if (q->buckets == NULL || q->hosts == NULL) {
		ext_query_destroy(q);
		return -ENOMEM;
	}
	q->size = hosts;
	q->off = off;
	q->table_key = random_key_derive(random, RANDOM_EXT_TABLE);
	random_numbers_init(&q->tids, random, RANDOM_EXT_TIDS);
	TAILQ_INIT(&q->open);
	TAILQ_INIT(&q->known);
	rate_init(&q->send, EXT_QUERY_SEND_NS, EXT_QUERY_SEND_BURST);
	rate_init(&q->answer, EXT_QUERY_ANSWER_NS, EXT_QUERY_ANSWER_BURST);
	q->deadline_ns = TIME_NEVER;
	*out = q;
	return 0;
}

void
ext_query_destroy(struct ext_query *q)
{
	if (q == NULL)
		return;
	free(q->buckets);
	free(q->hosts);
	alloc_put(&alloc_plain, q, sizeof(*q));
}

/* ---- Hosts ---- */

static struct ext_bucket *
ext_bucket(const struct ext_query *q, const uint8_t ours[16], const uint8_t theirs[16])
{
	uint8_t key[32];

	memcpy(key, ours, 16);
	memcpy(key + 16, theirs, 16);
	return &q->buckets[siphash24(&q->table_key, key, sizeof(key)) & (q->size - 1)];
}

static struct ext_host *
host_find(struct ext_query *q, const uint8_t ours[16], const uint8_t theirs[16])
{
	struct ext_host *h;

	LIST_FOREACH(h, ext_bucket(q, ours, theirs), link)
	{
		if (memcmp(h->ours, ours, 16) == 0 && memcmp(h->theirs, theirs, 16) == 0)
			return h;
	}
	return NULL;
}

/* A new host, in the place of the one that has been known for longest if there is no
 * other. One that is being asked is never replaced: these are fewer. */
static struct ext_host *
host_add(struct ext_query *q, const uint8_t ours[16], const uint8_t theirs[16])
{
	struct ext_host *h;

	static_assert(EXT_QUERY_OPEN < EXT_QUERY_HOSTS, "one can be replaced");
	if (q->host_count < q->size) {
		h = &q->hosts[q->host_count++];
	} else {
		h = TAILQ_FIRST(&q->known);
		TAILQ_REMOVE(&q->known, h, age_link);
		LIST_REMOVE(h, link);
	}
	memcpy(h->ours, ours, 16);
	memcpy(h->theirs, theirs, 16);
	LIST_INSERT_HEAD(ext_bucket(q, ours, theirs), h, link);
	return h;
}

/* Returns when the host's query is sent again, or ends. */
static uint64_t
host_due(const struct ext_query *q, const struct ext_host *h)
{
	if (h->tries == EXT_QUERY_TRIES)
		return h->since_ns + EXT_QUERY_SILENCE_NS;
	return RTE_MAX(h->since_ns + try_ns[h->tries], rate_ready_ns(&q->send));
}

static void
deadline_update(struct ext_query *q)
{
	const struct ext_host *h;

	q->deadline_ns = q->reply_count != 0 ? 0 : TIME_NEVER;
	TAILQ_FOREACH (h, &q->open, age_link)
		q->deadline_ns = RTE_MIN(q->deadline_ns, host_due(q, h));
}

static void
query_open(struct ext_query *q, struct ext_host *h, uint64_t now)
{
	h->open = true;
	h->tries = 0;
	h->tid = random_next(&q->tids);
	h->since_ns = h->asked_ns = now;
	TAILQ_INSERT_TAIL(&q->open, h, age_link);
	q->open_count++;
	deadline_update(q);
}

static void
query_end(struct ext_query *q, struct ext_host *h, uint32_t extensions, uint64_t now)
{
	TAILQ_REMOVE(&q->open, h, age_link);
	q->open_count--;
	h->open = false;
	h->extensions = extensions;
	h->since_ns = now;
	TAILQ_INSERT_TAIL(&q->known, h, age_link);
	q->generation++;
}

/* Returns what is known. *host: the host, or NULL. */
static enum ext_known
host_known(struct ext_query *q, const uint8_t ours[16], const uint8_t theirs[16],
	uint64_t now, struct ext_host **host)
{
	struct ext_host *h = *host = host_find(q, ours, theirs);

	if (h != NULL && h->open)
		return EXT_KNOWN_ASKED;
	return h != NULL && now < h->since_ns + EXT_QUERY_KEPT_NS ? EXT_KNOWN
								  : EXT_KNOWN_NOT;
}

enum ext_known
ext_query_find(struct ext_query *q, const uint8_t ours[16], const uint8_t theirs[16],
	uint64_t now, uint32_t *extensions)
{
	struct ext_host *h = NULL;
	enum ext_known known = q->off ? EXT_KNOWN : host_known(q, ours, theirs, now, &h);

	*extensions = known == EXT_KNOWN && h != NULL ? h->extensions : 0;
	return known;
}

enum ext_known
ext_query_ask(struct ext_query *q, const uint8_t ours[16], const uint8_t theirs[16],
	uint64_t now, uint32_t *extensions)
{
	enum ext_known known = ext_query_find(q, ours, theirs, now, extensions);
	struct ext_host *h;

	if (known != EXT_KNOWN_NOT || q->open_count == EXT_QUERY_OPEN)
		return known;
	h = host_find(q, ours, theirs);
	if (h != NULL)
		TAILQ_REMOVE(&q->known, h, age_link);
	else
		h = host_add(q, ours, theirs);
	query_open(q, h, now);
	return EXT_KNOWN_ASKED;
}

uint32_t
ext_query_own(const struct ext_query *q)
{
	return q->off ? 0 : EXT_ALL;
}

uint32_t
ext_query_generation(const struct ext_query *q)
{
	return q->generation;
}

/* ---- Messages ---- */

static void
query_rx(struct ext_query *q, const struct gsi_msg *msg, uint64_t tid,
	struct port_stats *stats, uint64_t now)
{
	struct ext_reply *reply;

	if (q->reply_count == RTE_DIM(q->replies) || rate_ready_ns(&q->answer) > now) {
		stats->drop[DROP_ext_limit]++;
		return;
	}
	rate_take(&q->answer, now);
	reply = &q->replies[(q->reply_first + q->reply_count++) % RTE_DIM(q->replies)];
	memcpy(reply->ours, msg->sgid, 16);
	memcpy(reply->theirs, msg->dgid, 16);
	reply->tid = tid;
	q->deadline_ns = 0;
}

static void
answer_rx(struct ext_query *q, const struct gsi_msg *msg, const struct ext_mad *mad,
	struct port_stats *stats, uint64_t now)
{
	struct ext_host *h = host_find(q, msg->sgid, msg->dgid);

	/* Another host cannot guess the transaction ID. */
	if (h == NULL || !h->open || h->tries == 0 || h->tid != mad->tid) {
		stats->drop[DROP_ext_unasked]++;
		return;
	}
	if (mad->extensions != 0)
		stats->ext_hosts_some++;
	else
		stats->ext_hosts_none++;
	query_end(q, h, mad->extensions, now);
	deadline_update(q);
}

void
ext_query_rx(struct ext_query *q, const struct gsi_msg *msg, struct port_stats *stats,
	uint64_t now)
{
	struct ext_mad mad;

	switch (ext_mad_read(msg->bytes, &mad)) {
	case EXT_MAD_QUERY:
		query_rx(q, msg, mad.tid, stats, now);
		break;
	case EXT_MAD_ANSWER:
		answer_rx(q, msg, &mad, stats, now);
		break;
	case EXT_MAD_OTHER:
		stats->drop[DROP_ext_format]++;
		break;
	}
}

static void
msg_fill(const struct ext_query *q, struct gsi_msg *msg, enum ext_mad_kind kind,
	const uint8_t ours[16], const uint8_t theirs[16], uint64_t tid)
{
	struct ext_mad mad = {.tid = tid, .extensions = ext_query_own(q)};

	memcpy(msg->sgid, ours, 16);
	memcpy(msg->dgid, theirs, 16);
	msg->answer = kind == EXT_MAD_ANSWER;
	ext_mad_write(msg->bytes, kind, &mad);
}

static void
reply_tx(struct ext_query *q, struct gsi_msg *msg)
{
	const struct ext_reply *reply = &q->replies[q->reply_first];

	msg_fill(q, msg, EXT_MAD_ANSWER, reply->ours, reply->theirs, reply->tid);
	q->reply_first = (q->reply_first + 1) % RTE_DIM(q->replies);
	q->reply_count--;
}

/* Returns the host whose query is to be sent now, or NULL. Ends queries without an answer. */
static struct ext_host *
query_next(struct ext_query *q, struct port_stats *stats, uint64_t now)
{
	struct ext_host *h, *next;

	for (h = TAILQ_FIRST(&q->open); h != NULL; h = next) {
		next = TAILQ_NEXT(h, age_link);
		if (host_due(q, h) > now)
			continue;
		if (h->tries < EXT_QUERY_TRIES)
			return h;
		stats->ext_hosts_silent++;
		query_end(q, h, 0, now);
	}
	return NULL;
}

bool
ext_query_tx(
	struct ext_query *q, struct gsi_msg *msg, struct port_stats *stats, uint64_t now)
{
	struct ext_host *h = NULL;
	bool more = true;

	if (q->reply_count != 0) {
		reply_tx(q, msg);
	} else if ((h = query_next(q, stats, now)) != NULL) {
		rate_take(&q->send, now);
		h->tries++;
		msg_fill(q, msg, EXT_MAD_QUERY, h->ours, h->theirs, h->tid);
	} else {
		more = false;
	}
	deadline_update(q);
	return more;
}

void
ext_query_tx_done(struct ext_query *q, const struct gsi_msg *msg, bool sent,
	struct port_stats *stats, uint64_t now)
{
	struct ext_host *h;

	if (sent && msg->answer)
		stats->ext_answers++;
	else if (sent)
		stats->ext_queries++;
	if (sent || msg->answer)
		return;
	h = host_find(q, msg->sgid, msg->dgid);
	if (h == NULL || !h->open || h->tries != 1 ||
		now >= h->asked_ns + EXT_QUERY_SILENCE_NS)
		return;
	rate_give(&q->send);
	h->tries = 0;
	h->since_ns = now + EXT_QUERY_RESOLVE_NS;
	deadline_update(q);
}

uint64_t
ext_query_deadline(const struct ext_query *q)
{
	return q->deadline_ns;
}
