/* SPDX-License-Identifier: BSD-3-Clause */
/* The rdma_cm backend of the process. */
#include "ucm_fixture.h"
#include "ucm/backend.h"

static void
backend_is_set_and_cleared(void **state)
{
	static const struct ucm_backend backend;

	assert_null(ucm_backend_get());
	ucm_backend_set(&backend);
	assert_ptr_equal(ucm_backend_get(), &backend);
	ucm_backend_set(NULL);
	assert_null(ucm_backend_get());
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			backend_is_set_and_cleared, ucm_setup, ucm_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
