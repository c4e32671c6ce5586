/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon's device: found when devices are listed, attached to when it is opened. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rocade/rocade.h>

#include "base/base_log.h"
#include "base/off.h"
#include "port/impair.h"
#include "qp/multipath.h"
#include "shm/shm.h"
#include "shm/shm_facts.h"
#include "verbs/device_source.h"
#include "verbs/verbs_port.h"

/* Says why a list of devices lacks the daemon's: the program might run without RDMA
 * unnoticed. Once, until there is a device again; programs list devices many times. */
static void
missing_device_log(const struct session *session, int rc)
{
	static bool said;
	char text[SESSION_TEXT];

	if (__atomic_exchange_n(&said, rc != 0, __ATOMIC_RELAXED) || rc == 0)
		return;
	session_error_text(session, NULL, rc, text, sizeof(text));
	log_err("%s", text);
}

/* Looks for the daemon, and adds its device to the list or removes it. */
static int
shm_discover(void)
{
	struct sw_device device;
	struct session session;
	int rc = session_open(&session, NULL);

	if (rc == 0) {
		rc = session_device(&session, &device);
		session_close(&session);
	}
	if (rc == -ENODEV && session.timed_out)
		rc = -ETIMEDOUT;
	missing_device_log(&session, rc);
	if (rc == 0)
		device_source_offer(device.name, shm_device_guid(&device),
			(int)sw_device_index(device.index, process_forks()));
	else
		device_source_withdraw();
	return rc;
}

static void
conf_fill(const struct sw_device *device, struct shm *shm, struct dev_conf *conf)
{
	memset(conf, 0, sizeof(*conf));
	conf->hooks = &shm_hooks;
	conf->hooks_arg = shm;
	memcpy(conf->name, device->name, sizeof(conf->name));
	conf->net = device->net;
	conf->net.vlan = 0; /* the daemon adds it */
	conf->mtu = device->mtu;
	conf->qpn_base = device->qpn_base;
	conf->max_qp = device->qpn_count;
	conf->qps_granted = device->max_qp;
	conf->mrs_granted = device->max_mr;
	conf->groups_granted = device->max_groups;
	conf->group_members_granted = device->max_group_members;
	conf->memberships_granted = device->max_memberships;
	conf->privileged = device->privileged;
	/* Unmodified programs expect that pages are pinned: memory that they unmap while
	 * it is registered must not end them when a peer accesses it. */
	conf->mr_fault_handler = true;
	conf->lossy = impair_is_on(&device->impair);
	/* The daemon has a turn in each round trip. */
	conf->cc = (struct cc_conf){.on = !device->local, .delay_unknown = true};
}

static void
asleep_shown(void *arg)
{
	pairs_show_asleep(container_of(arg, struct shm, progress_thread));
}

/* The progress thread looks from time to time whether the application still polls. */
static void
relieved(void *arg)
{
	struct shm *shm = container_of(arg, struct shm, progress_thread);

	if (__atomic_load_n(&shm->pairs.count, __ATOMIC_RELAXED) != 0)
		progress_thread_wake(arg);
}

static unsigned
more_published(void *arg, struct futex_word *words, unsigned max)
{
	return pairs_futex_words(
		container_of(arg, struct shm, progress_thread), words, max);
}

static int
engine_start(struct shm *shm)
{
	struct engine *e = shm->dev->engines[0];

	shm->now = engine_pass_time(e);
	shm->dev_stats = engine_stats(e);
	engine_set_latencies(
		e, &shm->region.client->latencies, &shm->region.client->slowest);
	shm->engine_thread = (struct engine_progress_thread){.wake = progress_thread_wake,
		.arg = &shm->progress_thread,
		.asleep = &shm->region.client->rx_asleep,
		.published = &shm->region.daemon->rx_prod,
		.asleep_shown = asleep_shown,
		.relieved = relieved,
		.more_published = more_published};
	engine_set_progress_thread(e, &shm->engine_thread);
	return progress_thread_start(
		&shm->progress_thread, e, shm->session.fd, &shm->region);
}

/* Closes the port on failure. */
static int
shm_dev_create(struct shm *shm, const struct sw_device *device, const struct port *port)
{
	struct dev_conf conf;
	char why[OFF_WHY_MAX];
	int rc = -EPROTO;

	conf_fill(device, shm, &conf);
	if (session_device_valid(device))
		rc = cc_env_read(&conf.cc, why, sizeof(why));
	if (rc == 0)
		rc = multipath_conf_read(&conf.paths, why, sizeof(why));
	if (rc == 0)
		rc = off_check(why, sizeof(why));
	if (rc == -EINVAL)
		log_err("%s", why);
	if (rc == 0)
		rc = dev_create(&conf, port, &alloc_plain, &shm->dev);
	if (rc != 0) {
		port->ops->close(port->drv);
		return rc;
	}
	rc = engine_start(shm);
	if (rc != 0)
		dev_destroy(shm->dev);
	return rc;
}

static void
source_close(struct dev *dev)
{
	struct shm *shm = dev->port.drv;

	shm_list_remove(shm);
	advice_port_closed(shm);
	progress_thread_stop(&shm->progress_thread);
	dev_destroy(dev);
}

/* Impairs the packets that the program sends, by the daemon, by a pair or back to the program itself.
 * Those that it receives are in memory that a client may not write to. */
static int
impair_as_told(struct shm *shm, struct rocade_port *port, const struct impair_conf *told)
{
	const struct rocade_impair conf = {.loss_ppm = told->loss_ppm,
		.duplicate_ppm = told->duplicate_ppm,
		.reorder_ppm = told->reorder_ppm,
		.corrupt_ppm = told->corrupt_ppm,
		.seed = told->seed + shm->client_id};
	struct engine *e = shm->dev->engines[0];
	int err;

	if (!impair_is_on(told))
		return 0;
	err = rocade_port_impair_tx(port, &conf);
	if (err != 0)
		return err;
	engine_lock(e);
	impair_count_in(
		port->engines[0].impair, IMPAIR_TX, &shm->region.client->impaired);
	engine_unlock(e);
	return 0;
}

/* opened: the session was. A failure after that may be no matter of the session. */
static void
attach_failure_log(const struct session *session, bool opened, int rc)
{
	char text[SESSION_TEXT];

	if (!opened || rc == -ENODEV || rc == -session->refused)
		session_error_text(session, NULL, rc, text, sizeof(text));
	else
		snprintf(text, sizeof(text), "%s%s", strerror(-rc),
			rc == -EPROTO ? " (its memory, or its description of the device)"
				      : "");
	log_err("cannot attach to the daemon: %s", text);
}

static int
source_open(struct rocade_port **out)
{
	struct sw_device device;
	struct session session;
	struct port port;
	struct shm *shm;
	int rc = session_open(&session, NULL);
	bool opened = rc == 0;

	if (opened)
		rc = shm_attach(&session, &port, &device, &shm);
	if (rc == 0)
		rc = shm_dev_create(shm, &device, &port);
	if (rc != 0) {
		attach_failure_log(&session, opened, rc);
		return rc == -ENOENT || rc == -ECONNREFUSED ? ENODEV : -rc;
	}
	advice_port_opened(device.local);
	shm_list_add(shm);
	*out = port_wrap(shm->dev);
	rc = *out != NULL ? impair_as_told(shm, *out, &device.impair) : ENOMEM;
	if (rc == 0)
		return 0;
	free(*out);
	source_close(shm->dev);
	return rc;
}

/* The facts of a daemon that is stopped now, from before. */
static struct {
	pthread_mutex_t lock;
	bool known, counted; /* the counters are known, too */
	struct device_facts facts;
} last = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int
daemon_facts(bool counters, struct device_facts *out)
{
	int rc = shm_facts(
		NULL, counters, __atomic_load_n(&last.known, __ATOMIC_RELAXED), out);

	/* Not held: in a child of fork() no thread may be left that releases it. */
	if (pthread_mutex_trylock(&last.lock) != 0)
		return rc;
	if (rc == 0 && (counters || !last.counted)) {
		last.facts = *out;
		last.counted = counters;
		__atomic_store_n(&last.known, true, __ATOMIC_RELAXED);
	} else if (rc == -ETIMEDOUT && last.known && (!counters || last.counted)) {
		*out = last.facts;
		rc = 0;
	}
	pthread_mutex_unlock(&last.lock);
	return rc;
}

static int
source_facts(bool counters, struct device_facts *out)
{
	int rc = daemon_facts(counters, out);

	out->index = sw_device_index(out->instance, process_forks());
	return rc;
}

static const struct device_source source = {
	.refresh = shm_discover,
	.facts = source_facts,
	.open = source_open,
	.close = source_close,
};

static __attribute__((constructor)) void
source_register(void)
{
	device_source_set(&source);
}
