noinst_LIBRARIES += src/conf/libconf.a
src_conf_libconf_a_SOURCES = \
	src/conf/config.c \
	src/conf/config.h \
	src/conf/config_check.c \
	src/conf/config_file.c \
	src/conf/config_load.h \
	src/conf/config_syntax.c \
	src/conf/covers.c \
	src/conf/covers.h \
	src/conf/setting.c \
	src/conf/setting.h \
	src/conf/setting_table.c \
	src/conf/settings.def \
	src/conf/wall_rules.c \
	src/conf/wall_rules.h \
	src/conf/walls.c \
	src/conf/walls.h

if HAVE_CMOCKA
check_PROGRAMS += tests/unit/conf/test_config
TESTS += tests/unit/conf/test_config

tests_unit_conf_test_config_SOURCES = tests/unit/conf/test_config.c
tests_unit_conf_test_config_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_conf_test_config_LDADD = src/conf/libconf.a src/base/libbase.a \
	$(CMOCKA_LIBS) $(CONFUSE_LIBS) $(JSON_LIBS) $(MD_LIBS)
endif
