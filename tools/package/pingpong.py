# SPDX-License-Identifier: BSD-3-Clause
"""ibv_rc_pingpong, both ends: the commands, and whether both have passed."""

# For sh -e -c '...': no single quotes. TCP port 18520 (hexadecimal 4858): another program of the
# machine may have the default one, as the systems of the tests share its network. The client
# starts when the server listens (state 0A), after 30 s at most.
PINGPONG = "ibv_rc_pingpong -g 0 -c -p 18520 -n 2000 >/tmp/server.txt & " \
           "for _ in $(seq 300); do " \
           'if grep -qs ":4858 0*:0000 0A" /proc/net/tcp /proc/net/tcp6; then break; fi; ' \
           "sleep 0.1; done; " \
           "ibv_rc_pingpong -g 0 -c -p 18520 -n 2000 127.0.0.1; wait $!; cat /tmp/server.txt"


def passed(status, text):
    return status == 0 and text.count("2000 iters in") == 2 and "invalid data" not in text
