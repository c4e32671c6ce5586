/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of a host that testpmd_ops_test.c does without: its memory regions are none. */
#include <stdlib.h>
#include <string.h>

#include "testpmd_reason.h"

static unsigned asked; /* calls of exchange_check() */
static unsigned tells; /* calls of exchange_tell_mws() */
static bool tells_lost;
static uint64_t now_ns; /* what clock_ns() returns */
static uint64_t room;   /* what tx_room() returns */

const struct mode_ops send_ops = {.paced = true};
const struct mode_ops both_ops = {.sends = true, .receives = true};

uint64_t
clock_ns(void)
{
	return now_ns;
}

uint64_t
tx_room(const struct host *host, const struct conn *conn)
{
	(void)host;
	(void)conn;
	return room;
}

int
host_poll_ready(struct host *host, struct ibv_cq *polled, int n, struct ibv_wc *wc)
{
	(void)host;
	return ibv_poll_cq(polled, n, wc);
}

unsigned
tx_post(struct host *host, struct conn *conn, unsigned n)
{
	(void)host;
	conn->posted += n;
	room -= n;
	return n;
}

void
host_wrong_bytes(struct host *h, const struct conn *c, const char *what, uint64_t msg,
	const uint8_t *data, uint64_t len, uint64_t seed, size_t bad, size_t first)
{
	(void)c;
	(void)len;
	h->tally.bad_messages++;
	host_set_error(h, "%s %d: %zu bad, %zu: %02x not %02x", what, (int)msg, bad,
		first, data[first], verify_byte(seed, first));
}

void
exchange_check(struct host *h, struct conn *c)
{
	(void)h;
	(void)c;
	asked++;
}

/* The datagram arrives, unless it is lost. */
void
exchange_tell_mws(struct host *h, const struct conn *c)
{
	struct mws_told told;

	mws_tell(h, c, &told);
	tells++;
	if (!tells_lost)
		(void)mws_learn(&tx, &tx_conn, &told);
}

uint64_t
exchange_options(const struct host *h, char text[OPTIONS_TEXT])
{
	(void)h;
	strcpy(text, "--op here");
	return 0;
}

void *
buffer_map(size_t len)
{
	return calloc(1, len);
}

void
buffer_unmap(void *mem, size_t len)
{
	(void)len;
	free(mem);
}

int
rxq_post(struct rxq *q)
{
	q->n_spare = 0;
	return 0;
}

#undef ibv_reg_mr
struct ibv_mr *
ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	static struct ibv_mr mr = {.rkey = 7};

	(void)pd;
	(void)addr;
	(void)length;
	(void)access;
	return &mr;
}

struct ibv_mr *
ibv_reg_mr_iova2(
	struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access)
{
	(void)iova;
	return ibv_reg_mr(pd, addr, length, (int)access);
}

int
ibv_dereg_mr(struct ibv_mr *mr)
{
	(void)mr;
	return 0;
}

const char *
ibv_wc_status_str(enum ibv_wc_status status)
{
	(void)status;
	return "";
}

int
ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	(void)srq;
	(void)attr;
	(void)mask;
	return 0;
}
