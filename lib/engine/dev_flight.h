/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
/* The flight recorders of a device's QPs (qp/flight.h), if it has been switched on: memory for
 * the records of QPs that enter ERR, and the thread that prints them to the log. */
#ifndef ROCADE_ENGINE_DEV_FLIGHT_H
#define ROCADE_ENGINE_DEV_FLIGHT_H

#include "qp/flight.h"

struct flight_printer;

/* Returns 0, -ENOMEM, or -errno of pthread_create(3). */
int flight_printer_start(struct flight_printer **out);
/* Prints what waits, and ends the thread. No engine of the device may be left. */
void flight_printer_stop(struct flight_printer *printer);
struct flight_log *flight_printer_log(struct flight_printer *printer);

/* Whether the environment asks for recorders: ROCADE_FLIGHT_RECORDER is set, and not "0". */
bool flight_recorder_wanted(void);

#endif
