/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that this one has started. */
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <faults/process_tree.h>

#include "case.h"

#define CHILDREN 150 /* the room of a tree grows more than once */

static struct process_tree tree;

static pid_t
child_start(void)
{
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* if this test fails */
		for (;;)
			pause();
	}
	return child;
}

static bool
is_there(pid_t pid)
{
	for (unsigned i = 0; i < tree.count; i++) {
		if (tree.all[i].pid == pid)
			return true;
	}
	return false;
}

/* The other processes of the host count to the room, not to the tree. */
TEST(all_children_are_found_by_pid_and_no_other_process)
{
	pid_t children[CHILDREN];

	for (unsigned i = 0; i < CHILDREN; i++)
		children[i] = child_start();
	process_tree_read(&tree);
	assert_int_equal(tree.count, CHILDREN);
	for (unsigned i = 0; i < CHILDREN; i++)
		assert_true(is_there(children[i]));
	for (unsigned i = 1; i < CHILDREN; i++)
		assert_true(tree.all[i - 1].pid < tree.all[i].pid);
	assert_false(is_there(getpid()));
	process_tree_end(&tree);
	assert_int_equal(tree.count, 0);
	process_tree_free(&tree);
}

/* Sets the name, ignores SIGTERM unless it is to end by that, and tells the parent that it has. */
static pid_t
named_start(const char *name, bool ignores)
{
	int ends[2];
	pid_t child;
	char byte;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, name);
		if (ignores)
			signal(SIGTERM, SIG_IGN);
		if (write(ends[1], "", 1) == 1)
			for (;;)
				pause();
		_exit(1);
	}
	assert_int_equal(read(ends[0], &byte, 1), 1);
	close(ends[0]);
	close(ends[1]);
	return child;
}

TEST(a_name_may_have_blanks_and_parentheses)
{
	pid_t child = named_start("a) R (b c", false);

	process_tree_read(&tree);
	assert_int_equal(tree.count, 1);
	assert_int_equal(tree.all[0].pid, child);
	assert_int_equal(tree.all[0].parent, getpid());
	assert_string_equal(tree.all[0].name, "a) R (b c");
	process_tree_end(&tree);
	process_tree_free(&tree);
}

/* process_tree_end() reaps all, so that a child of its own does the work, and sees how the daemon ends. */
TEST(a_program_that_ignores_sigterm_is_killed_and_the_daemon_is_not)
{
	int ends[2], status = 0;
	pid_t daemon;
	char how = 0;

	assert_int_equal(pipe(ends), 0);
	daemon = fork();
	assert_true(daemon >= 0);
	if (daemon == 0) {
		sigset_t term;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, "rocaded");
		sigemptyset(&term);
		sigaddset(&term, SIGTERM);
		sigprocmask(SIG_BLOCK, &term, NULL);
		if (write(ends[1], "b", 1) != 1)
			_exit(1);
		sigwait(&term, &status);
		if (write(ends[1], "t", 1) != 1) /* it has ended in good order */
			_exit(1);
		_exit(0);
	}
	assert_int_equal(read(ends[0], &how, 1), 1);
	(void)named_start("stubborn", true);
	process_tree_end(&tree);
	assert_int_equal(tree.count, 0);
	close(ends[1]);
	assert_int_equal(read(ends[0], &how, 1), 1);
	assert_int_equal(how, 't');
	close(ends[0]);
	process_tree_free(&tree);
}

/* The rocade-run that has started the daemon may have ended before it. */
TEST(a_daemon_that_ignores_sigterm_is_killed_at_last)
{
	(void)named_start("rocaded", true);
	process_tree_end(&tree);
	assert_int_equal(tree.count, 0);
	process_tree_free(&tree);
}
