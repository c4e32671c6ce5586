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

static void
given_path_precedes_environment(void **state)
{
	assert_int_equal(setenv(SW_SOCKET_ENV, "/from/environment", 1), 0);
	assert_string_equal(path("/given", true), "/given");
	assert_string_equal(path("", true), "/from/environment");
	assert_string_equal(path(NULL, false), "/from/environment");
	unsetenv(SW_SOCKET_ENV);
}

static void
default_path_is_the_users(void **state)
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

static void
too_long_path_is_refused(void **state)
{
	struct sockaddr_un addr;
	char text[sizeof(addr.sun_path) + 1];

	memset(text, 'x', sizeof(text));
	text[sizeof(addr.sun_path)] = '\0';
	assert_int_equal(sw_socket_path(text, true, &addr), -EINVAL);
	text[sizeof(addr.sun_path) - 1] = '\0';
	assert_int_equal(sw_socket_path(text, true, &addr), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(given_path_precedes_environment),
		cmocka_unit_test(default_path_is_the_users),
		cmocka_unit_test(too_long_path_is_refused),
	};

	return cmocka_run_group_tests_name("socket", tests, NULL, NULL);
}
