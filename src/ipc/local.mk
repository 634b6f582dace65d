noinst_LIBRARIES += src/ipc/libipc.a
src_ipc_libipc_a_SOURCES = \
	src/ipc/crash_point.h \
	src/ipc/egress.h \
	src/ipc/exec_lock.c \
	src/ipc/exec_lock.h \
	src/ipc/exec_queue.c \
	src/ipc/exec_queue.h \
	src/ipc/job_table.c \
	src/ipc/job_table.h \
	src/ipc/lane_table.c \
	src/ipc/lane_table.h \
	src/ipc/notify.c \
	src/ipc/notify.h \
	src/ipc/record_index.c \
	src/ipc/record_index.h \
	src/ipc/record_index_impl.h \
	src/ipc/record_room.c \
	src/ipc/robust.c \
	src/ipc/robust.h \
	src/ipc/room.c \
	src/ipc/room.h \
	src/ipc/sandbox_table.c \
	src/ipc/sandbox_table.h \
	src/ipc/scoreboard.c \
	src/ipc/scoreboard.h \
	src/ipc/section.h \
	src/ipc/server_life.c \
	src/ipc/server_life.h \
	src/ipc/shm.c \
	src/ipc/shm.h \
	src/ipc/slot_array.c \
	src/ipc/slot_array.h \
	src/ipc/slot_chain.c \
	src/ipc/slot_impl.h \
	src/ipc/slot_read.c \
	src/ipc/spawn_msg.h \
	src/ipc/terminal_msg.c \
	src/ipc/terminal_msg.h

if HAVE_CMOCKA
# The same sources again, with a call at every place where a test may kill.
check_LIBRARIES += tests/unit/ipc/libcrash.a
tests_unit_ipc_libcrash_a_SOURCES = \
	$(src_ipc_libipc_a_SOURCES) \
	tests/unit/ipc/crash.c \
	tests/unit/ipc/crash.h
tests_unit_ipc_libcrash_a_CPPFLAGS = $(AM_CPPFLAGS) -DORCHARD_CRASH_POINTS

ipc_test_libs = tests/unit/ipc/libcrash.a src/base/libbase.a $(CMOCKA_LIBS) $(JSON_LIBS) $(MD_LIBS)

check_PROGRAMS += tests/unit/ipc/test_exec_lock
TESTS += tests/unit/ipc/test_exec_lock
tests_unit_ipc_test_exec_lock_SOURCES = tests/unit/ipc/test_exec_lock.c
tests_unit_ipc_test_exec_lock_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_ipc_test_exec_lock_LDADD = $(ipc_test_libs)

# It has stand-ins of its own for mutex, eventfds and scoreboard, which go before those of the library.
check_PROGRAMS += tests/unit/ipc/test_exec_lock_model
TESTS += tests/unit/ipc/test_exec_lock_model
tests_unit_ipc_test_exec_lock_model_SOURCES = \
	tests/unit/ipc/explore.c \
	tests/unit/ipc/explore.h \
	tests/unit/ipc/test_exec_lock_model.c
tests_unit_ipc_test_exec_lock_model_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_ipc_test_exec_lock_model_LDADD = $(ipc_test_libs)

check_PROGRAMS += tests/unit/ipc/test_job_table
TESTS += tests/unit/ipc/test_job_table
tests_unit_ipc_test_job_table_SOURCES = tests/unit/ipc/test_job_table.c
tests_unit_ipc_test_job_table_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_ipc_test_job_table_LDADD = $(ipc_test_libs)

check_PROGRAMS += tests/unit/ipc/test_lane_table
TESTS += tests/unit/ipc/test_lane_table
tests_unit_ipc_test_lane_table_SOURCES = tests/unit/ipc/test_lane_table.c
tests_unit_ipc_test_lane_table_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_ipc_test_lane_table_LDADD = $(ipc_test_libs)

check_PROGRAMS += tests/unit/ipc/test_notify
TESTS += tests/unit/ipc/test_notify
tests_unit_ipc_test_notify_SOURCES = tests/unit/ipc/test_notify.c
tests_unit_ipc_test_notify_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_ipc_test_notify_LDADD = $(ipc_test_libs)

check_PROGRAMS += tests/unit/ipc/test_record_index
TESTS += tests/unit/ipc/test_record_index
tests_unit_ipc_test_record_index_SOURCES = tests/unit/ipc/test_record_index.c
tests_unit_ipc_test_record_index_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_ipc_test_record_index_LDADD = $(ipc_test_libs)

check_PROGRAMS += tests/unit/ipc/test_sandbox_table
TESTS += tests/unit/ipc/test_sandbox_table
tests_unit_ipc_test_sandbox_table_SOURCES = tests/unit/ipc/test_sandbox_table.c
tests_unit_ipc_test_sandbox_table_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_ipc_test_sandbox_table_LDADD = $(ipc_test_libs)

check_PROGRAMS += tests/unit/ipc/test_scoreboard
TESTS += tests/unit/ipc/test_scoreboard
tests_unit_ipc_test_scoreboard_SOURCES = tests/unit/ipc/test_scoreboard.c
tests_unit_ipc_test_scoreboard_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_ipc_test_scoreboard_LDADD = $(ipc_test_libs)

check_PROGRAMS += tests/unit/ipc/test_shm
TESTS += tests/unit/ipc/test_shm
tests_unit_ipc_test_shm_SOURCES = tests/unit/ipc/test_shm.c
tests_unit_ipc_test_shm_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_ipc_test_shm_LDADD = $(ipc_test_libs)

check_PROGRAMS += tests/unit/ipc/test_terminal_msg
TESTS += tests/unit/ipc/test_terminal_msg
tests_unit_ipc_test_terminal_msg_SOURCES = tests/unit/ipc/test_terminal_msg.c
tests_unit_ipc_test_terminal_msg_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_ipc_test_terminal_msg_LDADD = $(ipc_test_libs)

# The library as the server has it.
check_PROGRAMS += tests/unit/ipc/test_threads
TESTS += tests/unit/ipc/test_threads
tests_unit_ipc_test_threads_SOURCES = tests/unit/ipc/test_threads.c
tests_unit_ipc_test_threads_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_ipc_test_threads_LDADD = src/ipc/libipc.a src/base/libbase.a $(CMOCKA_LIBS) $(JSON_LIBS) $(MD_LIBS)
endif
