noinst_LIBRARIES += src/network/libnetwork.a
src_network_libnetwork_a_SOURCES = \
	src/network/net.h \
	src/network/net_box.c \
	src/network/net_check.c \
	src/network/net_dns.c \
	src/network/net_element.c \
	src/network/net_gateway.c \
	src/network/net_host.c \
	src/network/net_impl.h \
	src/network/net_link.c \
	src/network/net_msg.c \
	src/network/net_msg.h \
	src/network/net_space.c \
	src/network/net_table.c \
	src/network/net_uplink.c

if HAVE_CMOCKA
network_tests = tests/unit/network/test_net
check_PROGRAMS += $(network_tests)
TESTS += $(network_tests)
network_test_cflags = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
network_test_ldadd = src/network/libnetwork.a src/ipc/libipc.a src/conf/libconf.a src/base/libbase.a $(CMOCKA_LIBS) $(JSON_LIBS) \
	$(CONFUSE_LIBS) $(MD_LIBS) $(NFTABLES_LIBS)

tests_unit_network_test_net_SOURCES = tests/unit/network/test_net.c
tests_unit_network_test_net_CFLAGS = $(network_test_cflags)
tests_unit_network_test_net_LDADD = $(network_test_ldadd)
endif
