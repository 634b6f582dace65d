# Directories as archives; part of the agent.
agent_tar_sources = \
	agent/tar/archive_call.h \
	agent/tar/inodes.c \
	agent/tar/inodes.h \
	agent/tar/pack.c \
	agent/tar/pax.c \
	agent/tar/place.c \
	agent/tar/place.h \
	agent/tar/put_run.c \
	agent/tar/read.c \
	agent/tar/read.h \
	agent/tar/routes.c \
	agent/tar/source.c \
	agent/tar/source.h \
	agent/tar/tar.h \
	agent/tar/unpack.c \
	agent/tar/unpack.h \
	agent/tar/walk.c \
	agent/tar/walk.h \
	agent/tar/write.c \
	agent/tar/write.h
EXTRA_DIST += agent/tar/README.md
