noinst_LIBRARIES += src/conf/libconf.a
src_conf_libconf_a_SOURCES = \
	src/conf/config.h \
	src/conf/settings.def
