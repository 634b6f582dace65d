# `make fuzz FUZZ_SECONDS=60`: libFuzzer over the parsers of foreign bytes, with ASan and UBSan; needs clang.
FUZZ_SECONDS = 60
FUZZ_CC = clang -std=gnu17 -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
	-I$(top_srcdir)/src -I$(top_builddir) $(EVENT_CFLAGS) $(JSON_CFLAGS)
FUZZ_RUN = -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1 -artifact_prefix=tests/fuzz/
fuzz_sources = tests/fuzz/fuzz_http_parser.c tests/fuzz/fuzz_json.c
EXTRA_DIST += $(fuzz_sources)
CLEANFILES += tests/fuzz/fuzz_http_parser tests/fuzz/fuzz_json

.PHONY: fuzz
fuzz:
	@mkdir -p tests/fuzz
	$(FUZZ_CC) -o tests/fuzz/fuzz_http_parser $(top_srcdir)/tests/fuzz/fuzz_http_parser.c \
		$(top_srcdir)/src/http/http_parser.c $(top_srcdir)/src/http/http_head.c \
		$(top_srcdir)/src/http/http_uri.c $(EVENT_LIBS)
	tests/fuzz/fuzz_http_parser $(FUZZ_RUN) -max_len=8192
	$(FUZZ_CC) -o tests/fuzz/fuzz_json $(top_srcdir)/tests/fuzz/fuzz_json.c $(top_srcdir)/src/base/json.c \
		$(top_srcdir)/src/base/json_reader.c $(top_srcdir)/src/base/json_scan.c $(top_srcdir)/src/base/err.c \
		$(top_srcdir)/src/base/text.c $(JSON_LIBS) $(MD_LIBS)
	tests/fuzz/fuzz_json $(FUZZ_RUN) -max_len=4096
