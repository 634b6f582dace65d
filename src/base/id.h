/* id.h - random identifiers and secrets, from getrandom(2). */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_BASE_ID_H
#define ORCHARD_BASE_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ID_UUID_SIZE = 37, ID_TOKEN_SIZE = 65 };

/* A random UUIDv4 in lower case. Aborts only if the kernel has no entropy call. */
void id_uuid4(char ret_uuid[ID_UUID_SIZE]);
/* The canonical 36-character form, lower-case hex, any version. */
bool id_is_uuid(const char *text);
/* 128 bits of a canonical UUID; false if text is not one. */
bool id_uuid_bytes(const char *text, uint8_t ret_bytes[16]);
/* And back. */
void id_uuid_text(const uint8_t bytes[16], char ret_uuid[ID_UUID_SIZE]);
/* 256 random bits in hex. */
void id_token(char ret_token[ID_TOKEN_SIZE]);
/* [a-z0-9]([-a-z0-9]{0,52}[a-z0-9])? : what may stand in a pod name. */
bool id_is_sandbox_id(const char *text);
/* A fresh sandbox id: "sb-" and 20 characters of [a-z0-9]. */
void id_sandbox(char ret_id[24]);

/* Time does not depend on where a and b differ (only on the lengths). */
bool id_secret_equal(const char *a, size_t a_len, const char *b, size_t b_len);

#endif
