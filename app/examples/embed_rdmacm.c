/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * librdmacm in a DPDK application that embeds Rocade. docs/embedding.md explains how to link it.
 *
 * Two processes, each with an ethdev port. The client sends a text, and the server replies with the
 * text in upper case. From rdma_create_event_channel() on, all calls are those of any RDMA program.
 * One thread does everything: it polls the engine, so it must not sleep in librdmacm. The channel
 * therefore does not block.
 *
 *   embed_rdmacm [EAL options] -- ADDRESS/PREFIX                   the server
 *   embed_rdmacm [EAL options] -- ADDRESS/PREFIX SERVER TEXT       the client
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_eal.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <rocade/rdmacm.h>
#include <rocade/rocade.h>

#define PORT 7471
#define TEXT_BYTES 256
#define RESOLVE_MS 2000
#define LIMIT_S 60

struct host {
	struct rocade_port *port;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener; /* of the server */
	struct rdma_cm_id *id;       /* the connection */
	struct ibv_mr *mr;
	char text[TEXT_BYTES];
};

/* ---- The application's loop ---- */

static void
host_poll(const struct host *h)
{
	static time_t end;

	if (end == 0)
		end = time(NULL) + LIMIT_S;
	if (time(NULL) > end)
		errx(1, "nothing has happened for %d s", LIMIT_S);
	rocade_engine_poll(rocade_port_engine(h->port, 0));
}

/* Polls the engine until there is an event, which must be of this type. Returns its ID. */
static struct rdma_cm_id *
host_event(struct host *h, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	while (rdma_get_cm_event(h->channel, &event) != 0) {
		if (errno != EAGAIN)
			err(1, "rdma_get_cm_event");
		host_poll(h);
	}
	if (event->event != type)
		errx(1, "%s instead of %s, status %d", rdma_event_str(event->event),
			rdma_event_str(type), event->status);
	id = event->id;
	rdma_ack_cm_event(event);
	return id;
}

static void
host_completion(struct host *h, struct ibv_cq *cq)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(cq, 1, &wc) == 0)
		host_poll(h);
	if (wc.status != IBV_WC_SUCCESS)
		errx(1, "a work request failed: %s", ibv_wc_status_str(wc.status));
}

/* ---- Both ends ---- */

static void
host_begin(struct host *h, const char *address)
{
	struct rocade_port_conf conf = {
		.size = sizeof(conf), .ethdev = 0, .addresses = address};

	if (rocade_rdmacm_check() != 0 || rocade_open_port(&conf, &h->port) != 0)
		errx(1, "%s", rocade_error());
	h->channel = rdma_create_event_channel();
	if (h->channel == NULL)
		err(1, "rdma_create_event_channel");
	if (fcntl(h->channel->fd, F_SETFL, O_NONBLOCK) != 0)
		err(1, "fcntl");
}

/* Creates the QP of the connection, with a receive. librdmacm makes its PD and its CQs. */
static void
host_qp_create(struct host *h)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1}};

	if (rdma_create_qp(h->id, NULL, &attr) != 0)
		err(1, "rdma_create_qp");
	h->mr = rdma_reg_msgs(h->id, h->text, TEXT_BYTES);
	if (h->mr == NULL || rdma_post_recv(h->id, NULL, h->text, TEXT_BYTES, h->mr) != 0)
		err(1, "rdma_reg_msgs, rdma_post_recv");
}

static void
text_send(struct host *h)
{
	if (rdma_post_send(h->id, NULL, h->text, TEXT_BYTES, h->mr, IBV_SEND_SIGNALED) !=
		0)
		err(1, "rdma_post_send");
	host_completion(h, h->id->send_cq);
}

static void
host_shut(struct host *h)
{
	rdma_dereg_mr(h->mr);
	rdma_destroy_qp(h->id);
	rdma_destroy_id(h->id);
	if (h->listener != NULL)
		rdma_destroy_id(h->listener);
	rdma_destroy_event_channel(h->channel);
	if (rocade_close_port(h->port) != 0)
		errx(1, "%s", rocade_error());
}

static struct sockaddr_in
address_of(const char *text)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(PORT)};

	if (inet_pton(AF_INET, text, &sa.sin_addr) != 1)
		errx(1, "invalid address \"%s\": expected IPv4", text);
	return sa;
}

static void
client_run(struct host *h, const char *server, const char *text)
{
	struct rdma_conn_param param = {.retry_count = 7, .rnr_retry_count = 7};
	struct sockaddr_in to = address_of(server);

	if (rdma_create_id(h->channel, &h->id, NULL, RDMA_PS_TCP) != 0)
		err(1, "rdma_create_id");
	if (rdma_resolve_addr(h->id, NULL, (struct sockaddr *)&to, RESOLVE_MS) != 0)
		err(1, "rdma_resolve_addr");
	host_event(h, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (rdma_resolve_route(h->id, RESOLVE_MS) != 0)
		err(1, "rdma_resolve_route");
	host_event(h, RDMA_CM_EVENT_ROUTE_RESOLVED);
	host_qp_create(h);
	if (rdma_connect(h->id, &param) != 0)
		err(1, "rdma_connect");
	host_event(h, RDMA_CM_EVENT_ESTABLISHED);
	snprintf(h->text, sizeof(h->text), "%s", text);
	text_send(h);
	host_completion(h, h->id->recv_cq);
	printf("device %s, reply: %s\n", ibv_get_device_name(h->id->verbs->device),
		h->text);
	if (rdma_disconnect(h->id) != 0)
		err(1, "rdma_disconnect");
	host_event(h, RDMA_CM_EVENT_DISCONNECTED);
}

static void
server_run(struct host *h)
{
	struct rdma_conn_param param = {.retry_count = 7, .rnr_retry_count = 7};
	struct sockaddr_in any = address_of("0.0.0.0");

	if (rdma_create_id(h->channel, &h->listener, NULL, RDMA_PS_TCP) != 0)
		err(1, "rdma_create_id");
	if (rdma_bind_addr(h->listener, (struct sockaddr *)&any) != 0 ||
		rdma_listen(h->listener, 1) != 0)
		err(1, "rdma_bind_addr, rdma_listen");
	puts("listening");
	fflush(stdout);
	h->id = host_event(h, RDMA_CM_EVENT_CONNECT_REQUEST);
	host_qp_create(h);
	if (rdma_accept(h->id, &param) != 0)
		err(1, "rdma_accept");
	host_event(h, RDMA_CM_EVENT_ESTABLISHED);
	host_completion(h, h->id->recv_cq);
	for (char *c = h->text; *c != '\0'; c++)
		*c = (char)toupper((unsigned char)*c);
	text_send(h);
	host_event(h, RDMA_CM_EVENT_DISCONNECTED);
	/* The client gets its DISCONNECTED by this. */
	if (rdma_disconnect(h->id) != 0)
		err(1, "rdma_disconnect");
	/* Until then it gets another answer if this one is lost. */
	host_event(h, RDMA_CM_EVENT_TIMEWAIT_EXIT);
	puts("served");
}

int
main(int argc, char *argv[])
{
	int eal = rte_eal_init(argc, argv);
	static struct host host;

	if (eal < 0)
		errx(1, "rte_eal_init failed");
	if (argc - eal != 2 && argc - eal != 4)
		errx(1, "usage: embed_rdmacm [EAL options] -- ADDRESS/PREFIX [SERVER TEXT]");
	host_begin(&host, argv[eal + 1]);
	if (argc - eal == 4)
		client_run(&host, argv[eal + 2], argv[eal + 3]);
	else
		server_run(&host);
	host_shut(&host);
	return 0;
}
