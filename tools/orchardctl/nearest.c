/* nearest.c - the number of letters to change, add, leave out or swap with a neighbour. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/nearest.h"

#include <string.h>

enum { LONGEST = 32 };

void
nearest_init(struct nearest *nearest, const char *given)
{
	size_t len = strlen(given);

	/* A third of the letters may be wrong, and of the shortest words one. */
	*nearest = (struct nearest){ .given = given, .distance = (unsigned)(len < 3 ? 1 : len / 3) + 1 };
}

static unsigned
least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

static unsigned
distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	unsigned d[LONGEST + 1][LONGEST + 1];

	for (unsigned i = 0; i <= a_len; i++)
		d[i][0] = i;
	for (unsigned j = 0; j <= b_len; j++)
		d[0][j] = j;
	for (size_t i = 1; i <= a_len; i++) {
		for (size_t j = 1; j <= b_len; j++) {
			d[i][j] = least(d[i - 1][j], d[i][j - 1]) + 1;
			d[i][j] = least(d[i][j], d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
		}
	}
	return d[a_len][b_len];
}

void
nearest_try(struct nearest *nearest, const char *word)
{
	size_t given_len = strlen(nearest->given), len = strlen(word);
	unsigned far;

	if (given_len > LONGEST || len > LONGEST)
		return;
	far = distance(nearest->given, given_len, word, len);
	if (far < nearest->distance) {
		nearest->distance = far;
		nearest->word = word;
	}
}
