/* SPDX-License-Identifier: BSD-3-Clause */
/* `fabric predict`: what hosts at one switch reach, with rates and buffers that are given,
 * for the report of the field kit. */
#ifndef ROCADE_FABRIC_PREDICT_H
#define ROCADE_FABRIC_PREDICT_H

/* argv[0]: "predict". Returns the exit status. */
int predict_main(int argc, char **argv);

#endif
