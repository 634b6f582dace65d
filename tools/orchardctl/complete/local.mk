# Completion: what a word may become, and the scripts of shells that ask.
tools_orchardctl_libctl_a_SOURCES += \
	tools/orchardctl/complete/cmd_complete.c \
	tools/orchardctl/complete/cmd_completion.c \
	tools/orchardctl/complete/line.c \
	tools/orchardctl/complete/line.h \
	tools/orchardctl/complete/offer.c \
	tools/orchardctl/complete/offer.h
