/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections of librdmacm with itself, by the device's address. */
#include <err.h>
#include <pthread.h>
#include <string.h>

#include <rdma/rdma_verbs.h>
#include <rdma/rsocket.h>

#include "objects.h"

static const char word[] = "word";

static void
check(bool good, const char *what)
{
	if (!good)
		err(1, "%s", what);
}

/* Returns the device's address of IPv4, with the port. */
static struct sockaddr_in
address(uint16_t port)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(port)};

	memcpy(&sa.sin_addr, our.gid.raw + 12, sizeof(sa.sin_addr));
	return sa;
}

/* ---- Sockets ---- */

static void *
answer(void *arg)
{
	int fd = raccept(*(int *)arg, NULL, NULL);
	char bytes[sizeof(word)];

	check(fd >= 0, "raccept");
	check(rrecv(fd, bytes, sizeof(bytes), MSG_WAITALL) == sizeof(bytes), "rrecv");
	check(rsend(fd, bytes, sizeof(bytes), 0) == sizeof(bytes), "rsend");
	check(rclose(fd) == 0, "rclose");
	return NULL;
}

static bool
sockets_talk(void)
{
	int listener = rsocket(AF_INET, SOCK_STREAM, 0),
	    fd = rsocket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in sa = address(0);
	socklen_t len = sizeof(sa);
	char bytes[sizeof(word)] = "";
	pthread_t thread;

	check(listener >= 0 && fd >= 0, "rsocket");
	check(rbind(listener, (struct sockaddr *)&sa, sizeof(sa)) == 0, "rbind");
	check(rlisten(listener, 1) == 0, "rlisten");
	check(rgetsockname(listener, (struct sockaddr *)&sa, &len) == 0, "rgetsockname");
	check(pthread_create(&thread, NULL, answer, &listener) == 0, "pthread_create");
	check(rconnect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0, "rconnect");
	check(rsend(fd, word, sizeof(word), 0) == sizeof(word), "rsend");
	check(rrecv(fd, bytes, sizeof(bytes), MSG_WAITALL) == sizeof(bytes), "rrecv");
	check(pthread_join(thread, NULL) == 0, "pthread_join");
	check(rclose(fd) == 0 && rclose(listener) == 0, "rclose");
	return strcmp(bytes, word) == 0;
}

/* ---- IDs ---- */

static const struct ibv_qp_init_attr id_qp = {
	.cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC, .sq_sig_all = 1};

static void *
accept_one(void *arg)
{
	struct ibv_qp_init_attr attr = id_qp;
	struct rdma_cm_id *id;

	check(rdma_get_request(arg, &id) == 0, "rdma_get_request");
	check(rdma_create_qp(id, NULL, &attr) == 0, "rdma_create_qp");
	check(rdma_accept(id, NULL) == 0, "rdma_accept");
	check(rdma_disconnect(id) == 0, "rdma_disconnect");
	rdma_destroy_qp(id);
	check(rdma_destroy_id(id) == 0, "rdma_destroy_id");
	return NULL;
}

static void
id_connect(struct rdma_cm_id *id, struct sockaddr_in *sa)
{
	struct ibv_qp_init_attr attr = id_qp;
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = 1, .max_sge = 1}};

	check(rdma_resolve_addr(id, NULL, (struct sockaddr *)sa, 1000) == 0,
		"rdma_resolve_addr");
	check(rdma_resolve_route(id, 1000) == 0, "rdma_resolve_route");
	check(rdma_create_srq(id, NULL, &srq) == 0, "rdma_create_srq");
	rdma_destroy_srq(id);
	check(rdma_create_qp(id, NULL, &attr) == 0, "rdma_create_qp");
	check(rdma_connect(id, NULL) == 0, "rdma_connect");
}

static void
ids_connect(void)
{
	struct sockaddr_in sa = address(0);
	struct rdma_cm_id *listener, *id;
	struct ibv_context **devices;
	pthread_t thread;
	int n = 0;

	devices = rdma_get_devices(&n);
	check(devices != NULL && n == 1, "rdma_get_devices");
	rdma_free_devices(devices);
	check(rdma_create_id(NULL, &listener, NULL, RDMA_PS_TCP) == 0, "rdma_create_id");
	check(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) == 0, "rdma_create_id");
	check(rdma_bind_addr(listener, (struct sockaddr *)&sa) == 0, "rdma_bind_addr");
	check(rdma_listen(listener, 1) == 0, "rdma_listen");
	sa.sin_port = rdma_get_src_port(listener);
	check(pthread_create(&thread, NULL, accept_one, listener) == 0, "pthread_create");
	id_connect(id, &sa);
	/* The other end waits until this one has answered. */
	check(rdma_disconnect(id) == 0, "rdma_disconnect");
	check(pthread_join(thread, NULL) == 0, "pthread_join");
	rdma_destroy_qp(id);
	check(rdma_destroy_id(id) == 0, "rdma_destroy_id");
	check(rdma_destroy_id(listener) == 0, "rdma_destroy_id");
}

bool
connections_work(void)
{
	ids_connect();
	return sockets_talk();
}
