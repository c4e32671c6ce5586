/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SEND with invalidate. The receiver has MWS_OF_QP memory windows of type 2 for each QP, and binds them in
 * turn: bind b is that of window b % MWS_OF_QP, with another R_Key each time, and the bth SEND with invalidate
 * of the QP invalidates it. The receiver binds a window again when it has been invalidated, and tells the
 * sender its R_Key by a datagram (exchange.h) when it is bound: the sender posts no SEND before it has the
 * R_Key for it.
 */
#ifndef TESTPMD_MWS_H
#define TESTPMD_MWS_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include <common/options.h>

#define MWS_OF_QP 32
/* Of the wr_id of a bind: a request of another kind has the number of a message there. */
#define MWS_WR_ID (UINT64_C(1) << 63)

struct host;
struct conn;

/* Of a QP of the receiver. Counts of binds, and of SENDs that have invalidated, from the last connect on. */
struct mws_bound {
	struct ibv_mw *mw[MWS_OF_QP];
	uint32_t rkeys[MWS_OF_QP]; /* of the binds that are posted last */
	uint64_t posted, bound, invalidated;
	uint64_t told; /* binds that the sender was told when it did not ask */
};

/* Of a QP of the sender: what it knows of the receiver's. */
struct mws_known {
	uint32_t rkeys[MWS_OF_QP];
	uint64_t bound, used;
	uint64_t asked_ns; /* 0: the sender does not wait for R_Keys */
};

struct mws {
	struct mws_bound *bound; /* of each QP; NULL: this end does not receive them */
	struct mws_known *known; /* NULL: this end does not send them */
};

/* R_Keys of binds from this one on. */
struct mws_told {
	uint64_t from;
	uint32_t n;
	uint32_t rkeys[MWS_OF_QP];
};

/* Whether the device has windows for all QPs of the port. Returns 0, or -1 with a message in err. */
int mws_check(const struct host *host, char err[ERR_MAX]);
/* At the first run that needs them. Returns 0, or an errno value with no window allocated: the next run tries
 * again. */
int mws_init(struct host *host);
void mws_fini(struct mws *mws, unsigned n_conns);
/* The messages of the QP are numbered from 0 again. Its RESET has unbound the windows. */
void mws_restart(struct host *host, const struct conn *conn);

/* The receiver. Binds the windows of all QPs that are not bound. Calls host_fail() if a post is refused. */
void mws_bind(struct host *host);
/* A bind is complete. */
void mws_bind_done(struct host *host, struct conn *conn, const struct ibv_wc *wc);
/* A SEND has invalidated the key: checks that it is the one whose turn it was, and binds its window again. */
void mws_invalidated(
	struct host *host, const struct conn *conn, uint64_t msg, uint32_t rkey);
/* Fills in the R_Keys that are bound. */
void mws_tell(const struct host *host, const struct conn *conn, struct mws_told *told);

/* The sender. Takes what the receiver has told. Returns false if it can be none of this connection. */
bool mws_learn(struct host *host, const struct conn *conn, const struct mws_told *told);
/* The R_Key for the next SEND. */
uint32_t mws_use(struct host *host, const struct conn *conn);
/* How many SENDs there are R_Keys for. */
uint64_t mws_room(const struct host *host, const struct conn *conn);

#endif
