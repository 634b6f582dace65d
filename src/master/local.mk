noinst_LIBRARIES += src/master/libmaster.a
src_master_libmaster_a_SOURCES = \
	src/master/role.h
