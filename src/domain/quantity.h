/* quantity.h - quantities as the answers write them (reading them: sandbox.h). */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_DOMAIN_QUANTITY_H
#define ORCHARD_DOMAIN_QUANTITY_H

#include <stdint.h>

enum { QUANTITY_TEXT_SIZE = 24 };

/* Whole cores as "2", anything else in thousandths: "500m". */
void quantity_cpu_text(int32_t milli, char ret_text[QUANTITY_TEXT_SIZE]);
/* The largest of Gi G Mi M Ki that divides it: "2Gi", "1536Mi", "1G"; else plain bytes. */
void quantity_memory_text(int64_t bytes, char ret_text[QUANTITY_TEXT_SIZE]);

#endif
