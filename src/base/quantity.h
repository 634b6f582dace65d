/* quantity.h - amounts of cpu and memory as text, read and written as Kubernetes does. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_BASE_QUANTITY_H
#define ORCHARD_BASE_QUANTITY_H

#include "base/cleanup.h"

#include <stdint.h>

enum { QUANTITY_TEXT_SIZE = 24 };

/*
 * "4", "2000m", "0.5" -> thousandths of a core; "16Gi", "512Mi", "1G", "1e3", bytes -> bytes. -1 for anything
 * else, for <= 0 and for what does not fit.
 */
int quantity_parse_cpu(const char *text, int32_t *ret_milli) MUSTCHECK;
int quantity_parse_memory(const char *text, int64_t *ret_bytes) MUSTCHECK;

/*
 * What a cluster says it has or is asked for, in units of 10^-scale (3: thousandths), rounded up. 0 for what is no amount
 * or a negative one, INT64_MAX for what is more.
 */
int64_t quantity_amount(const char *text, int scale);

/* Whole cores as "2", anything else in thousandths: "500m". */
void quantity_cpu_text(int32_t milli, char ret_text[QUANTITY_TEXT_SIZE]);
/* The largest of Gi G Mi M Ki that divides it: "2Gi", "1536Mi", "1G"; else plain bytes. */
void quantity_memory_text(int64_t bytes, char ret_text[QUANTITY_TEXT_SIZE]);

#endif
