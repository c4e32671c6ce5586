/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that embeds Rocade, with two ports joined by a loop, and uses librdmacm as any other
 * program does. A thread polls the engines. */
#ifndef ROCADE_TEST_RDMACM_FIXTURE_H
#define ROCADE_TEST_RDMACM_FIXTURE_H

#include <stdbool.h>

#include <rdma/rdma_cma.h>
#include <rocade/rocade.h>

#define ADDR_A "192.0.2.1"
#define ADDR_B "192.0.2.2"
#define PORT 7471

extern struct rocade_port *ports[2];

/* Opens the two ports, and starts the thread. */
void ports_open(void);
/* Closes one of them, and polls the other. */
void port_close(unsigned port);
/* Ends the thread, and closes the ports: nothing may use them any more. */
void ports_close(void);
/* Returns a counter of a port. */
uint64_t port_stat(unsigned port, const char *name);

struct sockaddr_storage *addr_of(const char *text, uint16_t port);
struct rdma_event_channel *channel_new(void);
/* Waits for an event, which must be of this type and succeed. Acknowledges it.
 * Returns its ID. */
struct rdma_cm_id *event_take(
	struct rdma_event_channel *channel, enum rdma_cm_event_type type);
/* As event_take(), for an event with this status. */
struct rdma_cm_id *event_take_status(
	struct rdma_event_channel *channel, enum rdma_cm_event_type type, int status);
struct rdma_cm_id *id_new(struct rdma_event_channel *channel, enum rdma_port_space ps);
struct rdma_cm_id *listener_new(
	struct rdma_event_channel *channel, const char *addr, uint16_t port);

/* Creates an ID and resolves its way from one address (NULL: chosen) to another. */
struct rdma_cm_id *id_routed(struct rdma_event_channel *channel, enum rdma_port_space ps,
	const char *from, const char *to, uint16_t port);

/* Returns the errno value of rdma_bind_addr(), or 0. */
int bind_errno(struct rdma_event_channel *channel, const char *addr, uint16_t port);

/* One end of a connection, with what its QP needs. */
struct end {
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	char text[64];
};

/* Gives the ID, which has a device, a QP with a receive posted. */
void end_prepare(struct end *end, struct rdma_cm_id *id);
void end_free(struct end *end);
/* Connects from one address to a listener at another. */
void ends_connect(struct rdma_event_channel *channel, const char *from, const char *to,
	uint16_t port, struct end *active, struct end *passive);
/* Sends a text, and compares what arrives. */
void ends_talk(struct end *from, struct end *to, const char *text);
void ends_disconnect(
	struct rdma_event_channel *channel, struct end *active, struct end *passive);

/* Destroys both, and closes the ports. */
void all_close(struct rdma_event_channel *channel, struct rdma_cm_id *listener);

/* Listens on a port of all addresses, without librdmacm, whose IDs keep a port open. Returns the
 * descriptor. */
int raw_listener(uint16_t port, unsigned backlog);
/* Waits for a request to it, which stays undecided. */
void raw_request_take(int fd);

#endif
