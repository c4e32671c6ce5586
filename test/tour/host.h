/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the device comes from: a port that this program opens, or the system's. */
#ifndef ROCADE_TOUR_HOST_H
#define ROCADE_TOUR_HOST_H

#include "tour.h"

/* What the device needs before it is there. options: for example "addr=192.0.2.1/24" or
 * EAL's; NULL, or why not. loop: two devices joined in this process. */
const char *
host_open(char **options, unsigned count, bool loop);
/* The device's name; which: 0, or 1 for the other of a loop. */
const char *
host_device(unsigned which);
/* What a group's datagrams need before they come, beside a QP that is attached: the interface
 * joins it. NULL, or why not. One group at a time. */
const char *
host_join(const union ibv_gid *group, unsigned ifindex);
void
host_leave(void);
/* Nobody runs it any more: what the other end may ask for first. */
void
host_stop(void);
void
host_close(void);
/* After a failure: what the device counted. */
void
host_report(void);

#endif
