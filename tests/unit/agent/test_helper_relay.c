/* test_helper_relay.c - a helper that nobody waits for may say what it likes. */
/* SPDX-License-Identifier: MIT */
#include "agent/files/helper_priv.h"

#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

void
helper_close(struct helper *helper)
{
	helper_relay_stop(helper);
}

static void
messages_without_an_exchange_are_dropped(void **state)
{
	static const char head[1 + sizeof(struct helper_head_message) + 1] = { HELPER_HEAD };
	struct event_base *base = event_base_new();
	struct helper helper = { .fd = -1 };
	int ends[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	helper_relay_start(&helper, base, ends[0]);
	assert_int_equal(send(ends[1], "W", 1, 0), 1);
	assert_int_equal(send(ends[1], head, sizeof head, 0), sizeof head);
	assert_int_equal(send(ends[1], "Dbytes", 6, 0), 6);
	assert_int_equal(send(ends[1], "T/etc/passwd", 12, 0), 12);
	assert_int_equal(send(ends[1], "Z", 1, 0), 1);
	close(ends[1]);
	assert_int_equal(event_base_dispatch(base), 1);
	assert_int_equal(helper.fd, -1);
	assert_false(helper.answering);
	assert_null(helper.leaves);
	event_base_free(base);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_without_an_exchange_are_dropped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
