/* SPDX-License-Identifier: BSD-3-Clause */
/* A pair with helpers for XRC: domains, SRQs with a number, initiators and targets. */
#ifndef ROCADE_TEST_XRC_FIXTURE_H
#define ROCADE_TEST_XRC_FIXTURE_H

#include "verbs_pair.h"

#define XRC_FD_FLAGS (IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS)
#define XRC_SRQ_FLAGS                                                                    \
	(IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD |        \
		IBV_SRQ_INIT_ATTR_CQ)
#define XRC_REMOTE                                                                       \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define XRC_MSG 3000

extern struct verbs_pair pair;

/* xrc_domain_open() returns the result of ibv_open_xrcd(), which may be NULL.
 * xrc_domain() opens a domain without a file. */
struct ibv_xrcd *xrc_domain_open(struct ibv_context *context, int fd, int oflags);
struct ibv_xrcd *xrc_domain(struct verbs_side *s);
/* The attributes that xrc_srq() uses. */
struct ibv_srq_init_attr_ex xrc_srq_attr(
	struct verbs_side *s, struct ibv_xrcd *xrcd, struct ibv_cq *cq);
struct ibv_srq *xrc_srq(struct verbs_side *s, struct ibv_xrcd *xrcd, struct ibv_cq *cq);
uint32_t xrc_srqn(struct ibv_srq *srq);
struct ibv_qp *xrc_target(struct ibv_context *context, struct ibv_xrcd *xrcd);
struct ibv_qp *xrc_initiator(struct verbs_side *s, uint64_t ops);
/* Take one QP, or both, from RESET to RTS. */
void xrc_connect_one(struct ibv_qp *qp, const union ibv_gid *peer, uint32_t peer_qpn);
void xrc_connect(struct verbs_side *from, struct ibv_qp *initiator, struct verbs_side *to,
	struct ibv_qp *target);
void xrc_recv(struct verbs_side *s, struct ibv_srq *srq, uint64_t wr_id, size_t offset);
/* Returns the result of ibv_post_send(); xrc_send() expects 0. */
int xrc_send_try(struct verbs_side *s, struct ibv_qp *qp, uint32_t srqn, uint64_t wr_id,
	size_t offset, uint32_t len);
void xrc_send(struct verbs_side *s, struct ibv_qp *qp, uint32_t srqn, uint64_t wr_id,
	size_t offset, uint32_t len);
/* Waits for the next completion and compares it. */
void xrc_complete(
	struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status, struct ibv_wc *wc);
/* A file without a name. */
int xrc_file(void);
/* Setup and teardown of a case: a pair with one engine. */
int xrc_setup(void **state);
int xrc_teardown(void **state);

#endif
