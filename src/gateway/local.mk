noinst_LIBRARIES += src/gateway/libgateway.a
src_gateway_libgateway_a_SOURCES = \
	src/gateway/agent_side.c \
	src/gateway/client_side.c \
	src/gateway/door.c \
	src/gateway/gateway.c \
	src/gateway/gateway.h \
	src/gateway/liveness.c \
	src/gateway/message.c \
	src/gateway/message.h \
	src/gateway/outbox.c \
	src/gateway/outbox.h \
	src/gateway/sandbox_note.c \
	src/gateway/side.c \
	src/gateway/terminal.c \
	src/gateway/terminal.h \
	src/gateway/typed.c
src_gateway_libgateway_a_CFLAGS = $(AM_CFLAGS) $(WEBSOCKETS_CFLAGS)
EXTRA_DIST += src/gateway/README.md docs/decisions/0005-gateway.md

if HAVE_CMOCKA
check_PROGRAMS += tests/unit/gateway/test_message
TESTS += tests/unit/gateway/test_message
tests_unit_gateway_test_message_SOURCES = tests/unit/gateway/test_message.c
tests_unit_gateway_test_message_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_gateway_test_message_LDADD = src/gateway/libgateway.a src/base/libbase.a \
	$(CMOCKA_LIBS) $(JSON_LIBS) $(MD_LIBS) -lm

check_PROGRAMS += tests/unit/gateway/test_outbox
TESTS += tests/unit/gateway/test_outbox
tests_unit_gateway_test_outbox_SOURCES = tests/unit/gateway/test_outbox.c
tests_unit_gateway_test_outbox_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_gateway_test_outbox_LDADD = src/gateway/libgateway.a src/base/libbase.a $(CMOCKA_LIBS) $(MD_LIBS)
endif
