# libFuzzer over what reads foreign bytes; `make fuzz` builds the programs, scripts/fuzz configures for it and runs them. Needs
# clang and --enable-sanitizers=fuzzer-no-link,address,undefined: without these the programs see nothing.
fuzz_programs = \
	tests/fuzz/fuzz_agent_files \
	tests/fuzz/fuzz_agent_request \
	tests/fuzz/fuzz_egress \
	tests/fuzz/fuzz_gateway \
	tests/fuzz/fuzz_http_parser \
	tests/fuzz/fuzz_image_name \
	tests/fuzz/fuzz_json \
	tests/fuzz/fuzz_settings \
	tests/fuzz/fuzz_specs \
	tests/fuzz/fuzz_tar \
	tests/fuzz/fuzz_uri \
	tests/fuzz/fuzz_ws
EXTRA_PROGRAMS += $(fuzz_programs)
CLEANFILES += $(fuzz_programs)

.PHONY: fuzz
fuzz: $(fuzz_programs)

fuzz_cppflags = $(AM_CPPFLAGS) -I$(top_srcdir)
fuzz_ldflags = $(AM_LDFLAGS) -fsanitize=fuzzer
fuzz_base = src/base/libbase.a $(JSON_LIBS) $(MD_LIBS)
fuzz_http = src/http/libhttp.a $(fuzz_base) $(EVENT_LIBS)
fuzz_agent = agent/libagent.a $(fuzz_http) $(ZLIB_LIBS)
fuzz_config = src/conf/libconf.a $(fuzz_base) $(CONFUSE_LIBS)

tests_fuzz_fuzz_agent_files_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_fuzz_agent_files_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_agent_files_LDADD = $(fuzz_agent)
tests_fuzz_fuzz_agent_request_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_fuzz_agent_request_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_agent_request_LDADD = $(fuzz_agent)
tests_fuzz_fuzz_egress_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_egress_LDADD = $(fuzz_base)
tests_fuzz_fuzz_gateway_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_fuzz_gateway_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_gateway_LDADD = src/gateway/libgateway.a $(fuzz_agent) $(WEBSOCKETS_LIBS)
tests_fuzz_fuzz_http_parser_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_http_parser_LDADD = $(fuzz_http)
tests_fuzz_fuzz_image_name_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_image_name_LDADD = src/image/libimage.a src/backend/libbackend.a $(fuzz_config) -lm
tests_fuzz_fuzz_json_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_json_LDADD = $(fuzz_base)
tests_fuzz_fuzz_settings_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_settings_LDADD = $(fuzz_config) -lm
tests_fuzz_fuzz_specs_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_specs_LDADD = src/domain/libdomain.a src/ipc/libipc.a $(fuzz_config) $(EVENT_LIBS) -lm
tests_fuzz_fuzz_tar_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_fuzz_tar_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_tar_LDADD = $(fuzz_agent)
tests_fuzz_fuzz_uri_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_uri_LDADD = src/worker/libworker.a $(fuzz_http)
tests_fuzz_fuzz_ws_CPPFLAGS = $(fuzz_cppflags)
tests_fuzz_fuzz_ws_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_ws_LDADD = $(fuzz_agent)
