noinst_LIBRARIES += src/kube/libkube.a
src_kube_libkube_a_SOURCES = \
	src/kube/kube_auth.c \
	src/kube/kube_auth.h \
	src/kube/kube_backoff.c \
	src/kube/kube_backoff.h \
	src/kube/kube_call.c \
	src/kube/kube_client.c \
	src/kube/kube_client.h \
	src/kube/kube_client_impl.h \
	src/kube/kube_config.c \
	src/kube/kube_config.h \
	src/kube/kube_config_file.c \
	src/kube/kube_config_impl.h \
	src/kube/kube_config_plugin.c \
	src/kube/kube_credential.c \
	src/kube/kube_credential.h \
	src/kube/kube_curl.c \
	src/kube/kube_curl.h \
	src/kube/kube_exchange.c \
	src/kube/kube_exchange.h \
	src/kube/kube_lines.c \
	src/kube/kube_lines.h \
	src/kube/kube_list.c \
	src/kube/kube_list.h \
	src/kube/kube_program.c \
	src/kube/kube_program.h \
	src/kube/kube_status.c \
	src/kube/kube_status.h \
	src/kube/kube_watch.c \
	src/kube/kube_watch.h \
	src/kube/kube_wire.c \
	src/kube/kube_wire.h \
	src/kube/kube_yaml.c \
	src/kube/kube_yaml.h
src_kube_libkube_a_CFLAGS = $(AM_CFLAGS) $(CURL_CFLAGS) $(YAML_CFLAGS)

if HAVE_CMOCKA
kube_tests = \
	tests/unit/kube/test_auth \
	tests/unit/kube/test_call \
	tests/unit/kube/test_config \
	tests/unit/kube/test_http2 \
	tests/unit/kube/test_lines \
	tests/unit/kube/test_list \
	tests/unit/kube/test_slots \
	tests/unit/kube/test_tls \
	tests/unit/kube/test_watch \
	tests/unit/kube/test_yaml
check_PROGRAMS += $(kube_tests)
TESTS += $(kube_tests)
kube_test_ldadd = src/kube/libkube.a src/conf/libconf.a src/base/libbase.a $(CMOCKA_LIBS) $(YAML_LIBS) \
	$(EVENT_LIBS) $(JSON_LIBS) $(CONFUSE_LIBS) $(MD_LIBS) -lm
kube_test_rig = tests/unit/kube/kube_rig.c tests/unit/kube/kube_rig.h
kube_test_doors = tests/unit/kube/tls_rig.c tests/unit/kube/tls_rig.h

tests_unit_kube_test_call_SOURCES = tests/unit/kube/test_call.c $(kube_test_rig)
tests_unit_kube_test_call_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_kube_test_call_LDADD = $(kube_test_ldadd)

tests_unit_kube_test_slots_SOURCES = tests/unit/kube/test_slots.c $(kube_test_rig)
tests_unit_kube_test_slots_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_kube_test_slots_LDADD = $(kube_test_ldadd)

tests_unit_kube_test_watch_SOURCES = tests/unit/kube/test_watch.c $(kube_test_rig)
tests_unit_kube_test_watch_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_kube_test_watch_LDADD = $(kube_test_ldadd)

tests_unit_kube_test_config_SOURCES = tests/unit/kube/test_config.c $(kube_test_rig)
tests_unit_kube_test_config_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_kube_test_config_LDADD = $(kube_test_ldadd)

tests_unit_kube_test_tls_SOURCES = tests/unit/kube/test_tls.c $(kube_test_rig) $(kube_test_doors)
tests_unit_kube_test_tls_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_kube_test_tls_LDADD = $(kube_test_ldadd)

tests_unit_kube_test_http2_SOURCES = tests/unit/kube/test_http2.c $(kube_test_rig) $(kube_test_doors)
tests_unit_kube_test_http2_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_kube_test_http2_LDADD = $(kube_test_ldadd)

tests_unit_kube_test_auth_SOURCES = tests/unit/kube/test_auth.c $(kube_test_rig)
tests_unit_kube_test_auth_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_kube_test_auth_LDADD = $(kube_test_ldadd)

tests_unit_kube_test_list_SOURCES = tests/unit/kube/test_list.c $(kube_test_rig)
tests_unit_kube_test_list_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_kube_test_list_LDADD = $(kube_test_ldadd)

tests_unit_kube_test_lines_SOURCES = tests/unit/kube/test_lines.c
tests_unit_kube_test_lines_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_kube_test_lines_LDADD = $(kube_test_ldadd)

tests_unit_kube_test_yaml_SOURCES = tests/unit/kube/test_yaml.c
tests_unit_kube_test_yaml_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_kube_test_yaml_LDADD = $(kube_test_ldadd)
endif
