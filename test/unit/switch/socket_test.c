/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <unistd.h>

#include "switch_fixture.h"
#include "switch/socket.h"

static const char *
path(const char *given, bool client)
{
	static struct sockaddr_un addr;

	assert_int_equal(sw_socket_path(given, client, &addr), 0);
	assert_int_equal(addr.sun_family, AF_UNIX);
	return addr.sun_path;
}

TEST(given_path_precedes_environment)
{
	assert_int_equal(setenv(SW_SOCKET_ENV, "/from/environment", 1), 0);
	assert_string_equal(path("/given", true), "/given");
	assert_string_equal(path("", true), "/from/environment");
	assert_string_equal(path(NULL, false), "/from/environment");
	unsetenv(SW_SOCKET_ENV);
}

TEST(default_path_is_the_users)
{
	struct sockaddr_un addr;

	unsetenv(SW_SOCKET_ENV);
	assert_int_equal(setenv("XDG_RUNTIME_DIR", "/nonexistent", 1), 0);
	/* Without that directory a client uses the machine's socket. */
	assert_string_equal(path(NULL, true), SW_SOCKET_RUN);
	assert_string_equal(path(NULL, false),
		geteuid() == 0 ? SW_SOCKET_RUN : "/nonexistent/rocade.sock");
	unsetenv("XDG_RUNTIME_DIR");
	assert_string_equal(path(NULL, true), SW_SOCKET_RUN);
	assert_int_equal(
		sw_socket_path(NULL, false, &addr), geteuid() == 0 ? 0 : -ENOENT);
}

TEST(too_long_path_is_refused)
{
	struct sockaddr_un addr;
	char text[sizeof(addr.sun_path) + 1];

	memset(text, 'x', sizeof(text));
	text[sizeof(addr.sun_path)] = '\0';
	assert_int_equal(sw_socket_path(text, true, &addr), -EINVAL);
	text[sizeof(addr.sun_path) - 1] = '\0';
	assert_int_equal(sw_socket_path(text, true, &addr), 0);
}
