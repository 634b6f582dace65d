noinst_LIBRARIES += src/ipc/libipc.a
src_ipc_libipc_a_SOURCES = \
	src/ipc/exec_lock.h \
	src/ipc/job_table.h \
	src/ipc/notify.h \
	src/ipc/record_index.h \
	src/ipc/sandbox_table.h \
	src/ipc/scoreboard.h \
	src/ipc/shm.h \
	src/ipc/spawn_msg.h
