/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * If more is sent than SENDs on RC QPs, the ends of a run exchange datagrams. Each has a UD QP for it,
 * whose QPN is that before --qpn-base, or one for each host, and core i of one end asks core i of the
 * other. The sender asks, until the receiver has answered. With --mode both each end asks and answers: that
 * with the higher address asks when it has been asked, so that its QPs are connected once.
 *
 * HELLO  Are your options the same as mine? The receiver connects its QPs if the session is new to it,
 *        and answers with its options, and with the address and the R_Key of its target.
 * CHECK  Have you checked the WRITEs of this QP up to this one? Is all right, if this was the last
 *        message of the run?
 * END    The run is over.
 * MWS    What are the R_Keys of the memory windows of this QP? (mws.h) The receiver also tells them
 *        without a question, when it has bound more of them.
 *
 * ALIVE tells a receiver, which WRITEs and READs do not wake, that the run goes on.
 */
#ifndef TESTPMD_EXCHANGE_H
#define TESTPMD_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include <common/options.h>

#include "testpmd_conf.h"
#include "mws.h"
#include "target.h"

#define UD_QKEY 0x2d52544du                  /* of all UD QPs */
#define EXCHANGE_TEXT 128                    /* of a datagram: longer options are cut */
#define OPTIONS_TEXT (512 + SIZES_MAX * 12)  /* all options */
#define EXCHANGE_AGAIN_NS UINT64_C(10000000) /* from a question to the next */
#define EXCHANGE_REPEATS                                                                 \
	10 /* of a question: more are hardly lost, nor are their answers */

/* The run of the end that asks, as this end knows it, which answers. */
struct exchange_asked {
	bool receives; /* a message that completes a receive is expected now */
	bool agreed;   /* the options are the same, and the QPs are connected */
	bool ended;    /* END has come */
	uint64_t session, run;
	uint64_t heard, heard_ns; /* datagrams of this run, and when the last one came */
	uint64_t refused_ns;      /* when it first heard of other options; 0: never */
};

/* The members from agreed on are those of an end that asks. */
struct exchange {
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_ah *ah;
	uint8_t *mem; /* of the receives */
	uint32_t
		peer_qpn; /* of the other end; of another core than 0 it is known late: peers_there */
	uint32_t
		peers_there; /* of core 0, atomic: how many peers the other end has; 0: not known yet */
	uint32_t unsignaled;

	bool ready;   /* context of cq */
	bool on;      /* the run uses it */
	bool ring;    /* the run's WRITEs wait for checks */
	bool mws;     /* the run's SENDs wait for R_Keys */
	bool polling; /* inside exchange_poll() */
	struct exchange_asked asked;

	bool agreed; /* the options are the same, and the receiver's QPs are connected */
	bool ended;  /* END was answered */
	uint64_t session; /* another one when the QPs have been reset */
	uint64_t run;     /* counts the runs */
	uint64_t hello_ns, alive_ns, end_ns, heard_ns;
	uint32_t peer_srqn;     /* of an XRC SRQ */
	struct target_map peer; /* the receiver's target */
};

/* The QPN of the datagrams of the host of this core and peer of an end with this number of peers. For core 0 it
 * does not depend on how many cores and peers that end has. */
static inline uint32_t
exchange_qpn(const struct conf *conf, unsigned core, unsigned peers, unsigned peer)
{
	return (uint32_t)conf->qpn_base - 1 - core * peers - peer;
}

/* exchange.c: return 0, or -1 with a message in err. */
int exchange_open(struct host *host, char err[ERR_MAX]);
void exchange_close(struct exchange *exchange);
/* At `start`, when the path to the peer is set. Returns 0, or -1 after host_fail(). */
int exchange_start(struct host *host);
/* A reset QP of the sender begins another session. */
void exchange_restart(struct host *host);
/* Receives datagrams. Returns their number. */
unsigned exchange_poll(struct host *host);

/* exchange_answer.c: one that receives, about every millisecond. Ends a run whose sender has other options. */
void exchange_watch(struct host *host, uint64_t now_ns);
/* Tells the sender the R_Keys of the memory windows of a QP. */
void exchange_tell_mws(struct host *host, const struct conn *conn);

/* exchange_ask.c: the sender. Each repeats what is not answered. */
void exchange_hello(struct host *host, uint64_t now_ns);
/* While the run goes on. */
void exchange_tick(struct host *host, uint64_t now_ns);
/* Asks for a check of the WRITEs that are acknowledged, if it is time for it. */
void exchange_check(struct host *host, struct conn *conn);
/* When all is acknowledged: returns true if the receiver has found all right. */
bool exchange_finish(struct host *host, uint64_t now_ns);

/* Between exchange.c and its users. The wire has little-endian numbers. */
enum exchange_kind {
	EXCHANGE_HELLO,
	EXCHANGE_CHECK,
	EXCHANGE_END,
	EXCHANGE_ALIVE,
	EXCHANGE_MWS
};

struct exchange_msg {
	char magic[4];
	uint8_t kind;
	uint8_t answer; /* 0: a question */
	uint8_t last;   /* CHECK: no message follows in this run */
	uint8_t wrong;  /* an answer to CHECK: what was checked is wrong */
	uint64_t session;
	uint64_t run; /* of the sender */
	union {
		struct {
			uint64_t digest; /* of the options */
			char text[EXCHANGE_TEXT];
			uint64_t count; /* --count, 0: none */
			/* --mode both: the peer's session that this end has agreed to, or 0 */
			uint64_t of_session;
			uint64_t addr, read_len, stride;
			uint32_t slots, rkey, srqn;
			uint32_t peers; /* of the end that says so */
		} hello;
		struct {
			uint64_t qp;     /* its index */
			uint64_t writes; /* of them are acknowledged; checked */
			uint64_t
				messages; /* are acknowledged, from the last connect on */
			uint64_t fadd, cas;
		} check;
		struct {
			uint64_t qp; /* its index */
			struct mws_told told;
		} mws;
	} u;
};

struct exchange_msg exchange_question(const struct host *host, enum exchange_kind kind);
void exchange_post(struct host *host, const struct exchange_msg *msg);
/* Whether a datagram with this QPN may be of the core of the other end, which has `peers` peers. */
bool exchange_is_of_core(const struct host *host, uint32_t qpn, uint32_t peers);
/* The options that both ends need to have the same, in words; returns a digest of them. The words have
 * --count, too, which one end may do without: the digest does not. */
uint64_t exchange_options(const struct host *host, char text[OPTIONS_TEXT]);
/* Whether a HELLO has other options than this end, whose words are in own then. */
bool exchange_differs(const struct host *host, const struct exchange_msg *hello,
	char own[OPTIONS_TEXT]);
/* Fills in the options of a HELLO. */
void exchange_options_put(const struct host *host, struct exchange_msg *hello);
void exchange_asked(
	struct host *host, const struct exchange_msg *msg); /* exchange_answer.c */
void exchange_answered(
	struct host *host, const struct exchange_msg *msg); /* exchange_ask.c */

#endif
