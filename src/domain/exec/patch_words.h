/* patch_words.h - why a patch was not applied, told for who wrote it. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_DOMAIN_PATCH_WORDS_H
#define ORCHARD_DOMAIN_PATCH_WORDS_H

/*
 * From what git or patch said, each NULL or text: what is wrong and what to do, as a sentence of one line without its full stop.
 * malloc'ed; NULL: they are words that we do not know. Pure.
 */
char *patch_words(const char *out, const char *err);

#endif
