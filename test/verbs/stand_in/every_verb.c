/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * every_verb: calls each verb that is Rocade's on objects of its device, in a process in which the library of
 * stand_in.h takes libibverbs' place: as a program that is linked with the verb, and as one that looks it up
 * in the library's handle. Prints how many calls it has made.
 * every_verb librdmacm: looks at the functions of librdmacm that are Rocade's, without a call.
 * every_verb connect: librdmacm's functions call the verbs.
 * every_verb bypass NAME NODE: calls one function of the library with an object, which it must refuse.
 */
#include <dlfcn.h>
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "objects.h"

struct objects our;
char our_bytes[OBJECT_BYTES];

void *
found(const char *name)
{
	void *function = dlsym(RTLD_DEFAULT, name);

	if (function == NULL)
		errx(1, "%s is nowhere", name);
	return function;
}

static void
check(const void *object, const char *what)
{
	if (object == NULL)
		err(1, "%s", what);
}

static void
queues_make(void)
{
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct ibv_qp_init_attr qp = {.cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_UD};

	our.channel = ibv_create_comp_channel(our.context);
	check(our.channel, "ibv_create_comp_channel");
	our.cq = ibv_create_cq(our.context, 1, NULL, our.channel, 0);
	check(our.cq, "ibv_create_cq");
	our.srq = ibv_create_srq(our.pd, &srq);
	check(our.srq, "ibv_create_srq");
	qp.send_cq = qp.recv_cq = our.cq;
	our.qp = ibv_create_qp(our.pd, &qp);
	check(our.qp, "ibv_create_qp");
	/* Calls that wait for an event return. */
	(void)fcntl(our.context->async_fd, F_SETFL, O_NONBLOCK);
	(void)fcntl(our.channel->fd, F_SETFL, O_NONBLOCK);
}

static void
memory_make(void)
{
	struct ibv_alloc_dm_attr dm = {.length = OBJECT_BYTES};
	struct comp_cntr_init_attr counter = {.type = COMP_CNTR_WRS};

	our.mr = ibv_reg_mr(our.pd, our_bytes, OBJECT_BYTES, IBV_ACCESS_LOCAL_WRITE);
	check(our.mr, "ibv_reg_mr");
	our.dm = ibv_alloc_dm(our.context, &dm);
	check(our.dm, "ibv_alloc_dm");
	our.buf_bytes = FOUND(ibv_alloc_buf)(our.pd, OBJECT_BYTES, &our.buf);
	check(our.buf_bytes, "ibv_alloc_buf");
	our.counter = FOUND(ibv_create_comp_cntr)(
		our.context, (struct ibv_comp_cntr_init_attr *)&counter);
	check(our.counter, "ibv_create_comp_cntr");
}

static void
objects_make(void)
{
	int n = 0;

	our.list = ibv_get_device_list(&n);
	if (our.list == NULL || n != 1)
		errx(1, "%d devices", n);
	our.device = our.list[0];
	our.context = ibv_open_device(our.device);
	check(our.context, "ibv_open_device");
	if (ibv_query_gid(our.context, 1, 0, &our.gid) != 0)
		err(1, "ibv_query_gid");
	our.pd = ibv_alloc_pd(our.context);
	check(our.pd, "ibv_alloc_pd");
	queues_make();
	memory_make();
}

/* The stand-in is told the objects. */
static void
objects_name(void *library)
{
	const void *objects[] = {our.list, our.device, our.context, our.pd, our.channel,
		our.cq, our.srq, our.qp, our.mr, our.dm, our.buf, our.counter};
	void (*name)(const void *object) =
		(void (*)(const void *))dlsym(library, "stand_in_object");

	if (name == NULL)
		errx(1, "libibverbs is not the stand-in");
	for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++)
		name(objects[i]);
}

/* A function of Rocade's library. */
static void
ours_check(void *function, const char *name)
{
	Dl_info info;

	if (dladdr(function, &info) == 0 ||
		strstr(info.dli_fname, "/librocade-verbs.so") == NULL)
		errx(1, "%s is not Rocade's", name);
}

static void *
looked_up(void *library, const struct verb *verb)
{
	void *function = verb->node[0] != '\0' ? dlvsym(library, verb->name, verb->node)
					       : dlsym(library, verb->name);

	if (function == NULL)
		errx(1, "%s@%s is not found", verb->name, verb->node);
	return function;
}

static void
verbs_call(void *library)
{
	unsigned calls = 0;

	for (size_t i = 0; i < verb_count; i++, calls += 2) {
		verbs[i].call(found(verbs[i].name));
		verbs[i].call(looked_up(library, &verbs[i]));
	}
	printf("%u calls of %zu verbs\n", calls, verb_count);
}

/* Those of librdmacm give the real functions the program's IDs, so a real one cannot tell whether Rocade's has
 * been called before. Each reference must lead to Rocade's. */
static void
cm_check(void *library)
{
	static const struct verb functions[] = {
#define FORWARD_CM(name, node) {#name, node, NULL},
#include "verbs/symbols.def"
	};
	const size_t count = sizeof(functions) / sizeof(functions[0]);

	for (size_t i = 0; i < count; i++) {
		ours_check(found(functions[i].name), functions[i].name);
		ours_check(looked_up(library, &functions[i]), functions[i].name);
	}
	printf("%zu functions of librdmacm\n", count);
}

/* Returns only if the stand-in does not refuse the object. */
static void
bypass_call(void *library, const char *name, const char *node)
{
	const struct verb verb = {name, node, NULL};
	long (*function)(const void *) =
		(long (*)(const void *))looked_up(library, &verb);

	(void)function(our.pd);
}

int
main(int argc, char **argv)
{
	void *libraries[2] = {dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL),
		dlopen("librdmacm.so.1", RTLD_NOW | RTLD_LOCAL)};

	if (libraries[0] == NULL || libraries[1] == NULL)
		errx(1, "%s", dlerror());
	objects_make();
	objects_name(libraries[0]);
	if (argc == 4 && strcmp(argv[1], "bypass") == 0) {
		bypass_call(libraries[0], argv[2], argv[3]);
	} else if (argc == 2 && strcmp(argv[1], "connect") == 0) {
		if (!connections_work())
			return 1;
		printf("connected\n");
	} else if (argc == 2 && strcmp(argv[1], "librdmacm") == 0) {
		cm_check(libraries[1]);
	} else {
		verbs_call(libraries[0]);
	}
	return 0;
}
