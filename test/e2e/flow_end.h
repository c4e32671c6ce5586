/* SPDX-License-Identifier: BSD-3-Clause */
/* One end of a connection: a device, a QP and a buffer for its requests. On an error the
 * functions print a message and end the process, except for those that return an errno
 * value. */
#ifndef ROCADE_TEST_E2E_FLOW_END_H
#define ROCADE_TEST_E2E_FLOW_END_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#define DEPTH 16
#define SIZE 9000 /* three packets, the last one shorter */

struct end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	uint8_t *buf;
};

void die(const char *what) __attribute__((noreturn));
/* Whether standard input ends within the timeout; -1: waits without a limit. */
bool input_ended(int timeout_ms);
uint64_t now_ns(void);
struct ibv_qp *qp_make(const struct end *e, enum ibv_qp_type type, struct ibv_srq *srq);
/* Opens rocade0. Returns false if it does not exist. */
bool device_open(struct end *e);
void end_open(struct end *e);
/* Returns 0 or an errno value. */
int end_close(struct end *e);
int qp_init(struct ibv_qp *qp);
/* Connects to the QP with this number at our own address. Returns 0 or an errno value. */
int qp_connect(struct ibv_qp *qp, uint32_t dest);
/* The same with the QP at another address. */
int qp_connect_to(struct ibv_qp *qp, const union ibv_gid *gid, uint32_t dest);
/* The same with another ACK timeout than two seconds, in its code. */
int qp_connect_timeout(
	struct ibv_qp *qp, const union ibv_gid *gid, uint32_t dest, uint8_t timeout);
/* Creates a UD QP with Q_Key 1 that can send. */
struct ibv_qp *datagram_qp(const struct end *e);
/* Fills a slot with the content of message n. */
void message_fill(uint8_t *buf, uint64_t n);
int recv_post(struct end *e, unsigned slot);
int send_post(struct end *e, unsigned slot);
/* Connects the end to itself, posts receives, requests a completion event and prints
 * "running". */
void end_run(struct end *e);

#endif
