/* SPDX-License-Identifier: BSD-3-Clause */
#include "ends.h"

void
ends_ports_open(struct rocade_port_conf conf[2], struct rocade_port *port[2])
{
	must(rocade_open_loop(conf, port) == 0, rocade_error());
}

void
ends_port_close(struct rocade_port *port)
{
	must(rocade_close_port(port) == 0, "rocade_close_port");
}

void
ends_pass(struct end *end)
{
	rocade_engine_poll(end->engine);
}

void
ends_srq_prepare(struct end *end)
{
	must(!end->mbufs, "mbufs over a loop");
}
