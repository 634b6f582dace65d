noinst_LIBRARIES += src/spawn/libspawn.a
src_spawn_libspawn_a_SOURCES = \
	src/spawn/destroyed.c \
	src/spawn/destroyed.h \
	src/spawn/peer.c \
	src/spawn/peer.h \
	src/spawn/request.c \
	src/spawn/request.h \
	src/spawn/turns.c \
	src/spawn/turns.h

if HAVE_CMOCKA
check_PROGRAMS += tests/unit/spawn/test_destroyed tests/unit/spawn/test_turns
TESTS += tests/unit/spawn/test_destroyed tests/unit/spawn/test_turns
tests_unit_spawn_test_destroyed_SOURCES = tests/unit/spawn/test_destroyed.c
tests_unit_spawn_test_destroyed_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_spawn_test_destroyed_LDADD = src/spawn/libspawn.a src/base/libbase.a \
	$(CMOCKA_LIBS) $(JSON_LIBS) $(MD_LIBS)

tests_unit_spawn_test_turns_SOURCES = tests/unit/spawn/test_turns.c
tests_unit_spawn_test_turns_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_spawn_test_turns_LDADD = src/spawn/libspawn.a src/ipc/libipc.a src/base/libbase.a \
	$(CMOCKA_LIBS) $(EVENT_LIBS) $(JSON_LIBS) $(MD_LIBS)
endif
