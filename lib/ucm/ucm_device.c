/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices: added, changed and removed while sessions are open. */
#include <errno.h>
#include <string.h>

#include "base/base_alloc.h"
#include "ucm/id.h"
#include "ucm/queue.h"
#include "ucm/ucm_addr.h"
#include "ucm/ucm_event.h"
#include "ucm/ucm_request.h"

int
ucm_device_add(
	struct ucm *ucm, const struct ucm_device_conf *conf, struct ucm_device **out)
{
	struct ucm_device *device;

	if (conf->net.addr_count == 0 || conf->net.addr_count > NET_MAX_ADDRS ||
		conf->path_mtu < 1 || conf->path_mtu > 5)
		return -EINVAL;
	device = alloc_get(&alloc_plain, "rdma_cm device", sizeof(*device));
	if (device == NULL)
		return -ENOMEM;
	device->ucm = ucm;
	device->conf = *conf;
	TAILQ_INIT(&device->ids);
	TAILQ_INSERT_TAIL(&ucm->devices, device, link);
	*out = device;
	return 0;
}

void
ucm_device_set_net(struct ucm_device *device, const struct net_conf *net)
{
	device->conf.net = *net;
}

/* The device of the ID is removed. The ID stays, for the program to destroy. */
static void
id_lose_device(struct ucm_id *id, uint64_t now)
{
	struct ucm_event *event;

	ucm_id_set_device(id, NULL);
	id->removed = true;
	if (id->state == UCM_MCAST)
		return; /* the ID that has joined gets the event */
	ucm_request_cancel(id->channel->session->ucm, id);
	ucm_id_release_conn(id, now);
	event = id->uid_set ? ucm_event_new(id, UCM_EVENT_DEVICE_REMOVAL, 0) : NULL;
	if (event != NULL)
		ucm_event_put(event);
}

bool
ucm_device_shrink(struct ucm_device *device, uint64_t now)
{
	struct ucm *ucm = device->ucm;
	unsigned removed = 0;
	struct ucm_id *id;

	for (; removed < UCM_DEVICE_BATCH && (id = TAILQ_FIRST(&device->ids)) != NULL;
		removed++) {
		if (id->request != NULL)
			ucm_id_destroy(id, now);
		else
			id_lose_device(id, now);
	}
	ucm_pump(ucm, now);
	return removed == UCM_DEVICE_BATCH;
}

void
ucm_device_remove(struct ucm_device *device, uint64_t now)
{
	struct ucm *ucm = device->ucm;

	do /* before the device is gone: the last messages */
		(void)ucm_device_shrink(device, now);
	while (!TAILQ_EMPTY(&device->ids));
	TAILQ_REMOVE(&ucm->devices, device, link);
	alloc_put(&alloc_plain, device, sizeof(*device));
}
