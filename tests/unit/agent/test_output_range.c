/* test_output_range.c - reading by offset, compared with a reference that keeps everything. */
/* SPDX-License-Identifier: MIT */
#include "agent/output.h"
#include "agent/spool.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { REFERENCE_MAX = 1 << 14, ROUNDS = 4000 };

static char spool_dir[] = "/tmp/test-output-XXXXXX";
static int spool_dir_fd;

/* What was written, and what of it has to be there: [0, first) and the last `last` bytes. */
struct reference {
	uint8_t bytes[REFERENCE_MAX];
	uint64_t total, first, last;
};

static uint64_t
least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static size_t
below(unsigned *seed, size_t limit)
{
	return limit == 0 ? 0 : (size_t)rand_r(seed) % limit;
}

static void
reference_add(struct reference *reference, unsigned *seed, size_t len)
{
	for (size_t i = 0; i < len; i++)
		reference->bytes[reference->total + i] = (uint8_t)rand_r(seed);
	reference->total += len;
}

/* spooled: bytes a spool would take once the cap is exceeded. */
static void
reference_settle(struct reference *reference, uint64_t cap, uint64_t spooled)
{
	uint64_t head = least(reference->total, cap - cap / 2);

	reference->last = least(reference->total - head, cap / 2);
	reference->first = reference->total > cap ? least(reference->total, spooled) : 0;
	if (reference->first < head)
		reference->first = head;
}

static uint64_t
reference_next(const struct reference *reference, uint64_t offset)
{
	if (offset < reference->first)
		return offset;
	if (offset < reference->total - reference->last)
		return reference->total - reference->last;
	return least(offset, reference->total);
}

static void
expect_same(struct output *output, const struct reference *reference, uint64_t offset, size_t max)
{
	uint8_t found[REFERENCE_MAX];
	uint64_t at, end, wanted = reference_next(reference, offset);
	size_t len = output_read(output, offset, found, max, &at);

	end = wanted < reference->first && reference->first < reference->total - reference->last ? reference->first
												 : reference->total;
	assert_int_equal(output->total, reference->total);
	assert_int_equal(at, wanted);
	assert_int_equal(len, least(max, end - wanted));
	assert_memory_equal(found, reference->bytes + at, len);
}

static bool
evict_nothing(void *arg)
{
	(void)arg;
	return false;
}

static struct spool_store *
make_store(uint64_t max_bytes)
{
	struct spool_store_options options = {
		.dir_fd = spool_dir_fd, .max_bytes = max_bytes, .evict = evict_nothing
	};

	return spool_store_create(&options);
}

static void
run_round(unsigned seed)
{
	static struct reference reference;
	size_t cap = below(&seed, 300), piece = 1 + below(&seed, 400), steps = below(&seed, 30);
	uint64_t spool_max = below(&seed, 2000), budget = below(&seed, 3) == 0 ? below(&seed, 2000) : 1 << 20;
	struct spool_store *store = make_store(budget);
	struct output output;

	reference.total = 0;
	output_init(&output, cap);
	output_spool_to(&output, store, spool_max);
	for (size_t i = 0; i < steps; i++) {
		size_t len = below(&seed, piece);

		reference_add(&reference, &seed, len);
		output_add(&output, reference.bytes + reference.total - len, len);
		reference_settle(&reference, cap, least(spool_max, budget));
		for (size_t reads = 0; reads < 4; reads++)
			expect_same(
				&output, &reference, below(&seed, (size_t)reference.total + 20), below(&seed, 500));
		assert_true(spool_store_bytes(store) <= budget);
	}
	reference_settle(&reference, cap, least(spool_max, budget));
	output_settle(&output);
	expect_same(&output, &reference, 0, REFERENCE_MAX);
	if (budget == 1 << 20) {
		output_leave_memory(&output, store);
		assert_int_equal(output_held(&output), 0);
		for (size_t reads = 0; reads < 8; reads++)
			expect_same(
				&output, &reference, below(&seed, (size_t)reference.total + 20), below(&seed, 500));
	}
	output_fini(&output);
	assert_int_equal(spool_store_bytes(store), 0);
	spool_store_free(store);
}

static void
test_every_read_is_what_was_written(void **state)
{
	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++)
		run_round(round);
}

static void
test_a_dropped_spool_leaves_head_and_tail(void **state)
{
	struct spool_store *store = make_store(1 << 20);
	struct reference reference = { .total = 0 };
	unsigned seed = 1;
	struct output output;

	(void)state;
	output_init(&output, 100);
	output_spool_to(&output, store, 1 << 20);
	reference_add(&reference, &seed, 5000);
	output_add(&output, reference.bytes, 5000);
	reference_settle(&reference, 100, 5000);
	expect_same(&output, &reference, 0, REFERENCE_MAX);
	output_drop_spool(&output);
	reference_settle(&reference, 100, 0);
	for (uint64_t offset = 0; offset < 5100; offset += 7)
		expect_same(&output, &reference, offset, 60);
	output_fini(&output);
	spool_store_free(store);
}

/* Where the last bytes do not fit beside others, none of them stays half. */
static void
test_last_bytes_are_kept_whole_or_not_at_all(void **state)
{
	for (uint64_t budget = 1000; budget <= 1050; budget += 25) {
		struct spool_store *store = make_store(budget);
		struct reference reference = { .total = 0 };
		unsigned seed = 2;
		struct output output;

		(void)state;
		output_init(&output, 100);
		output_spool_to(&output, store, 1000);
		reference_add(&reference, &seed, 5000);
		output_add(&output, reference.bytes, 5000);
		output_leave_memory(&output, store);
		reference.first = 1000;
		reference.last = budget == 1050 ? 50 : 0;
		for (uint64_t offset = 0; offset < 5100; offset += 7)
			expect_same(&output, &reference, offset, 60);
		output_fini(&output);
		spool_store_free(store);
	}
}

static void
test_an_unreadable_directory_is_no_spool(void **state)
{
	struct spool_store_options options = {
		.dir_fd = spool_dir_fd, .max_bytes = 1 << 20, .evict = evict_nothing
	};
	struct reference reference = { .total = 0 };
	struct spool_store *store;
	struct output output;
	unsigned seed = 3;

	(void)state;
	options.dir_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	store = spool_store_create(&options);
	output_init(&output, 10);
	output_spool_to(&output, store, 1000);
	reference_add(&reference, &seed, 500);
	output_add(&output, reference.bytes, 500);
	reference_settle(&reference, 10, 0);
	expect_same(&output, &reference, 0, 100);
	expect_same(&output, &reference, 5, 100);
	output_leave_memory(&output, store);
	reference.first = reference.last = 0;
	expect_same(&output, &reference, 0, 100);
	output_fini(&output);
	spool_store_free(store);
	close(options.dir_fd);
}

struct victims {
	struct spool *spools[8];
	size_t count;
};

static bool
evict_one(void *arg)
{
	struct victims *victims = arg;

	if (victims->count == 0)
		return false;
	spool_free(victims->spools[--victims->count]);
	return true;
}

static void
test_others_give_way_as_many_as_needed(void **state)
{
	static const char block[1000];
	struct victims victims = { .count = 0 };
	struct spool_store_options options = {
		.dir_fd = spool_dir_fd, .max_bytes = 4000, .evict = evict_one, .arg = &victims
	};
	struct spool_store *store = spool_store_create(&options);
	struct spool *spool;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		spool = spool_create(store, 4000);
		assert_non_null(spool);
		spool_add(spool, block, sizeof block);
		victims.spools[victims.count++] = spool;
	}
	spool = spool_create(store, 1 << 20);
	spool_add(spool, block, 1);
	assert_int_equal(victims.count, 3);
	for (size_t i = 0; i < 10; i++)
		spool_add(spool, block, sizeof block);
	assert_int_equal(victims.count, 0);
	assert_int_equal(spool_len(spool), 4000);
	spool_free(spool);
	assert_int_equal(spool_store_bytes(store), 0);
	spool_store_free(store);
}

static int
make_dir(void **state)
{
	(void)state;
	if (mkdtemp(spool_dir) == NULL)
		return -1;
	spool_dir_fd = open(spool_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return spool_dir_fd < 0 ? -1 : 0;
}

/* Fails when a file was left behind. */
static int
remove_dir(void **state)
{
	(void)state;
	close(spool_dir_fd);
	return rmdir(spool_dir);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_read_is_what_was_written),
		cmocka_unit_test(test_a_dropped_spool_leaves_head_and_tail),
		cmocka_unit_test(test_last_bytes_are_kept_whole_or_not_at_all),
		cmocka_unit_test(test_an_unreadable_directory_is_no_spool),
		cmocka_unit_test(test_others_give_way_as_many_as_needed),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
