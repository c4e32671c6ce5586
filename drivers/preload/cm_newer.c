/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdma_resolve_addrinfo(3), rdma_query_addrinfo(3) and rdma_write_cm_event(3). A librdmacm that has them is
 * called. An older one gets what it lacks: results are kept here until they are asked for or the ID is
 * destroyed, and events are written by an option of Rocade's, for which librdmacm fills in the ID.
 */
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "preload/cm_newer.h"
#include "preload/real_dl.h"
#include "ucm/event_type.h"
#include "verbs/export.h"

#define FIRST_NODE "RDMACM_1.0"
#define NEWER_NODE "RDMACM_1.4"

static void *
cm_real(const char *name, const char *node)
{
	static void *library;
	void *opened = __atomic_load_n(&library, __ATOMIC_RELAXED);

	if (opened == NULL) {
		/* Threads that race get the same handle. */
		opened = dlopen("librdmacm.so.1", RTLD_LAZY | RTLD_LOCAL);
		__atomic_store_n(&library, opened, __ATOMIC_RELAXED);
	}
	return opened != NULL ? real_dlvsym()(opened, name, node) : NULL;
}

/* The real function, or NULL. */
#define CM_REAL(name, node) ((__typeof__(name) *)cm_real(#name, node))

static int
cm_fail(int err)
{
	errno = err;
	return -1;
}

/* ---- Results of rdma_resolve_addrinfo() ---- */

struct resolved {
	LIST_ENTRY(resolved) link;
	const struct rdma_cm_id *id;
	struct rdma_addrinfo *info; /* NULL: being resolved */
};

static LIST_HEAD(, resolved) all_resolved = LIST_HEAD_INITIALIZER(all_resolved);
static pthread_mutex_t resolved_lock = PTHREAD_MUTEX_INITIALIZER;

static void
resolved_fork_prepare(void)
{
	pthread_mutex_lock(&resolved_lock);
}

static void
resolved_fork_done(void)
{
	pthread_mutex_unlock(&resolved_lock);
}

/* When the library is loaded, as in shm/fork.c: a child may destroy the parent's IDs. */
static __attribute__((constructor)) void
resolved_fork_handle(void)
{
	(void)pthread_atfork(
		resolved_fork_prepare, resolved_fork_done, resolved_fork_done);
}

/* With the lock held. */
static struct resolved *
resolved_find(const struct rdma_cm_id *id)
{
	struct resolved *r;

	LIST_FOREACH(r, &all_resolved, link)
	{
		if (r->id == id)
			break;
	}
	return r;
}

/* Returns 0, EBUSY if the ID has one, or ENOMEM. */
static int
resolved_add(const struct rdma_cm_id *id)
{
	struct resolved *r = calloc(1, sizeof(*r));
	int err = r != NULL ? 0 : ENOMEM;

	pthread_mutex_lock(&resolved_lock);
	if (err == 0 && resolved_find(id) != NULL)
		err = EBUSY;
	if (err == 0) {
		r->id = id;
		LIST_INSERT_HEAD(&all_resolved, r, link);
	}
	pthread_mutex_unlock(&resolved_lock);
	if (err != 0)
		free(r);
	return err;
}

static void
resolved_set(const struct rdma_cm_id *id, struct rdma_addrinfo *info)
{
	struct resolved *r;

	pthread_mutex_lock(&resolved_lock);
	r = resolved_find(id);
	if (r != NULL)
		r->info = info;
	pthread_mutex_unlock(&resolved_lock);
}

/* Removes the ID's, and returns its result. done: only if there is one. */
static struct rdma_addrinfo *
resolved_take(const struct rdma_cm_id *id, bool done)
{
	struct rdma_addrinfo *info = NULL;
	struct resolved *r;

	pthread_mutex_lock(&resolved_lock);
	r = resolved_find(id);
	if (r != NULL && (r->info != NULL || !done)) {
		info = r->info;
		LIST_REMOVE(r, link);
	} else {
		r = NULL;
	}
	pthread_mutex_unlock(&resolved_lock);
	free(r);
	return info;
}

static void
resolved_drop(const struct rdma_cm_id *id)
{
	struct rdma_addrinfo *info = resolved_take(id, false);

	if (info != NULL)
		CM_REAL(rdma_freeaddrinfo, FIRST_NODE)(info);
}

/* ---- Events ---- */

static int
option_event_write(
	struct rdma_cm_id *id, enum ucm_event_type type, int status, uint64_t arg)
{
	struct ucm_option_event event = {
		.event = type, .status = (uint32_t)status, .arg = arg};
	__typeof__(rdma_set_option) *set = CM_REAL(rdma_set_option, FIRST_NODE);

	if (set == NULL)
		return cm_fail(ENOSYS);
	return set(id, UCM_LEVEL_ROCADE, UCM_ROCADE_EVENT, &event, sizeof(event));
}

EXPORT int
rdma_write_cm_event(
	struct rdma_cm_id *id, enum rdma_cm_event_type event, int status, uint64_t arg)
{
	__typeof__(rdma_write_cm_event) *real = CM_REAL(rdma_write_cm_event, NEWER_NODE);

	if (real != NULL)
		return real(id, event, status, arg);
	if ((unsigned)event != UCM_EVENT_USER)
		return cm_fail(EINVAL);
	return option_event_write(id, UCM_EVENT_USER, status, arg);
}

/* An older librdmacm gives the program the argument as private data. */
static void
argument_place(struct rdma_cm_event *event)
{
	uint64_t arg;

	if (event->param.conn.private_data_len != sizeof(arg))
		return;
	memcpy(&arg, event->param.conn.private_data, sizeof(arg));
	memset(&event->param, 0, sizeof(event->param));
	memcpy(&event->param, &arg, sizeof(arg));
}

EXPORT int
rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	__typeof__(rdma_get_cm_event) *real = CM_REAL(rdma_get_cm_event, FIRST_NODE);
	int rc;

	if (real == NULL)
		return cm_fail(ENOSYS);
	rc = real(channel, event);
	if (rc == 0 && (unsigned)(*event)->event == UCM_EVENT_USER &&
		CM_REAL(rdma_write_cm_event, NEWER_NODE) == NULL)
		argument_place(*event);
	return rc;
}

/* ---- Calls ---- */

static int
lookup_errno(int rc)
{
	switch (rc) {
	case -1:
	case EAI_SYSTEM:
		return errno;
	case EAI_AGAIN:
		return EAGAIN;
	case EAI_MEMORY:
		return ENOMEM;
	default:
		return ENOENT;
	}
}

static int
hints_check(const char *node, const char *service, const struct rdma_addrinfo *hints)
{
	int flags = hints != NULL ? hints->ai_flags : 0;

	if ((flags & RAI_SA) == 0)
		return node != NULL || service != NULL || hints != NULL ? 0 : EINVAL;
	if ((flags & RAI_DNS) != 0 || node != NULL)
		return ENOTSUP;
	/* No device of Rocade has an administrator of the subnet. */
	return service != NULL ? EOPNOTSUPP : EINVAL;
}

/* Resolves at once, as the newer librdmacm does, and keeps the result. */
static int
dns_resolve(struct rdma_cm_id *id, const char *node, const char *service,
	const struct rdma_addrinfo *hints)
{
	__typeof__(rdma_getaddrinfo) *get = CM_REAL(rdma_getaddrinfo, FIRST_NODE);
	struct rdma_addrinfo plain, *info = NULL;
	int rc;

	if (get == NULL)
		return ENOSYS;
	if (hints != NULL) {
		plain = *hints;
		plain.ai_flags &= ~RAI_DNS; /* an older librdmacm does not know it */
	}
	rc = get(node, service, hints != NULL ? &plain : NULL, &info);
	if (rc != 0)
		return lookup_errno(rc);
	resolved_set(id, info);
	return option_event_write(id, UCM_EVENT_ADDRINFO_RESOLVED, 0, 0) == 0 ? 0 : errno;
}

/* Returns 0 or an errno value. */
static int
event_write_again(struct rdma_cm_id *id)
{
	uint64_t arg;

	/* librdmacm may have called its own rdma_get_cm_event(), or the one here, which did that. */
	argument_place(id->event);
	memcpy(&arg, &id->event->param, sizeof(arg));
	return option_event_write(id, UCM_EVENT_USER, id->event->status, arg) == 0
		       ? 0
		       : errno;
}

/* Every call on an ID without a channel of the program waits for its event, and keeps it in the ID. This
 * one does so, too, and finds no such request, but refuses other IDs, whose event is NULL, before it waits.
 * Events of the program's own that come first are for the program: they are put back, in their order. */
static int
synchronous_complete(struct rdma_cm_id *id)
{
	__typeof__(rdma_get_request) *get = CM_REAL(rdma_get_request, FIRST_NODE);
	struct rdma_cm_id *request;
	bool others = get != NULL;
	int err = 0;

	while (others && err == 0) {
		(void)get(id, &request);
		others =
			id->event != NULL && (unsigned)id->event->event == UCM_EVENT_USER;
		if (others)
			err = event_write_again(id);
	}
	return err;
}

EXPORT int
rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node, const char *service,
	const struct rdma_addrinfo *hints)
{
	__typeof__(rdma_resolve_addrinfo) *real =
		CM_REAL(rdma_resolve_addrinfo, NEWER_NODE);
	int err;

	if (real != NULL)
		return real(id, node, service, hints);
	if (id == NULL)
		return cm_fail(EINVAL);
	err = hints_check(node, service, hints);
	if (err == 0)
		err = resolved_add(id);
	if (err != 0)
		return cm_fail(err);
	err = dns_resolve(id, node, service, hints);
	if (err != 0) {
		resolved_drop(id);
		return cm_fail(err);
	}
	err = synchronous_complete(id);
	return err == 0 ? 0 : cm_fail(err);
}

EXPORT int
rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info)
{
	__typeof__(rdma_query_addrinfo) *real = CM_REAL(rdma_query_addrinfo, NEWER_NODE);
	struct rdma_addrinfo *found;

	if (real != NULL)
		return real(id, info);
	if (id == NULL || info == NULL)
		return cm_fail(EINVAL);
	found = resolved_take(id, true);
	if (found == NULL)
		return cm_fail(ENOENT);
	*info = found;
	return 0;
}

EXPORT int
rdma_destroy_id(struct rdma_cm_id *id)
{
	__typeof__(rdma_destroy_id) *real = CM_REAL(rdma_destroy_id, FIRST_NODE);

	if (real == NULL)
		return cm_fail(ENOSYS);
	resolved_drop(id);
	return real(id);
}

EXPORT void
rdma_destroy_ep(struct rdma_cm_id *id)
{
	__typeof__(rdma_destroy_ep) *real = CM_REAL(rdma_destroy_ep, FIRST_NODE);

	if (real == NULL)
		return;
	resolved_drop(id);
	real(id);
}
