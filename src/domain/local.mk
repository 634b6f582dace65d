noinst_LIBRARIES += src/domain/libdomain.a
src_domain_libdomain_a_SOURCES = \
	src/domain/exec.h \
	src/domain/job.h \
	src/domain/sandbox.h \
	src/domain/service.h
