# What does not work, and what mends it.
tools_orchardctl_libctl_a_SOURCES += \
	tools/orchardctl/doctor/check_client.c \
	tools/orchardctl/doctor/check_cluster.c \
	tools/orchardctl/doctor/check_host.c \
	tools/orchardctl/doctor/check_metrics.c \
	tools/orchardctl/doctor/check_redis.c \
	tools/orchardctl/doctor/check_rights.c \
	tools/orchardctl/doctor/check_server.c \
	tools/orchardctl/doctor/cmd_doctor.c \
	tools/orchardctl/doctor/finding.c \
	tools/orchardctl/doctor/finding.h \
	tools/orchardctl/doctor/metrics.c \
	tools/orchardctl/doctor/metrics.h \
	tools/orchardctl/doctor/try_sandbox.c
