noinst_LIBRARIES += src/controller/libcontroller.a
src_controller_libcontroller_a_SOURCES = \
	src/controller/answers.c \
	src/controller/answers.h \
	src/controller/claim.c \
	src/controller/claim.h \
	src/controller/claim_rule.c \
	src/controller/claim_rule.h \
	src/controller/control.c \
	src/controller/control.h \
	src/controller/controller.c \
	src/controller/controller.h \
	src/controller/counts.c \
	src/controller/counts.h \
	src/controller/ground.c \
	src/controller/ground.h \
	src/controller/id_map.c \
	src/controller/id_map.h \
	src/controller/node_sum.c \
	src/controller/node_sum.h \
	src/controller/order.h \
	src/controller/order_events.c \
	src/controller/order_make.c \
	src/controller/order_wait.c \
	src/controller/orders.c \
	src/controller/orders.h \
	src/controller/pods.c \
	src/controller/pods.h \
	src/controller/removal.c \
	src/controller/removal.h \
	src/controller/resources.c \
	src/controller/resources.h \
	src/controller/pod_container.c \
	src/controller/pod_container.h \
	src/controller/pod_event.c \
	src/controller/pod_event.h \
	src/controller/pod_labels.c \
	src/controller/pod_labels.h \
	src/controller/pod_policy.c \
	src/controller/pod_policy.h \
	src/controller/pod_policy_equal.c \
	src/controller/pod_read.c \
	src/controller/pod_read.h \
	src/controller/pod_rules.c \
	src/controller/pod_rules.h \
	src/controller/pod_spec.c \
	src/controller/pod_spec.h \
	src/controller/pod_status.c \
	src/controller/pod_status.h \
	src/controller/pod_template.c \
	src/controller/pod_template.h \
	src/controller/pod_write.c \
	src/controller/pod_write.h

EXTRA_DIST += src/controller/README.md

if HAVE_CMOCKA
controller_tests = \
	tests/unit/controller/test_claim_rule \
	tests/unit/controller/test_node_sum \
	tests/unit/controller/test_pod_event \
	tests/unit/controller/test_pod_policy \
	tests/unit/controller/test_pod_spec \
	tests/unit/controller/test_pod_status \
	tests/unit/controller/test_pod_template
check_PROGRAMS += $(controller_tests)
TESTS += $(controller_tests)
controller_test_cflags = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
controller_test_cppflags = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/unit/controller
controller_test_ldadd = src/controller/libcontroller.a src/kube/libkube.a src/ipc/libipc.a src/conf/libconf.a src/base/libbase.a \
	$(CMOCKA_LIBS) $(YAML_LIBS) $(EVENT_LIBS) $(JSON_LIBS) $(CONFUSE_LIBS) $(MD_LIBS) -lm

tests_unit_controller_test_claim_rule_SOURCES = tests/unit/controller/test_claim_rule.c tests/unit/controller/pods.h
tests_unit_controller_test_claim_rule_CPPFLAGS = $(controller_test_cppflags)
tests_unit_controller_test_claim_rule_CFLAGS = $(controller_test_cflags)
tests_unit_controller_test_claim_rule_LDADD = $(controller_test_ldadd)

tests_unit_controller_test_node_sum_SOURCES = tests/unit/controller/test_node_sum.c tests/unit/controller/pods.h
tests_unit_controller_test_node_sum_CPPFLAGS = $(controller_test_cppflags)
tests_unit_controller_test_node_sum_CFLAGS = $(controller_test_cflags)
tests_unit_controller_test_node_sum_LDADD = $(controller_test_ldadd)

tests_unit_controller_test_pod_event_SOURCES = tests/unit/controller/test_pod_event.c tests/unit/controller/pods.h
tests_unit_controller_test_pod_event_CPPFLAGS = $(controller_test_cppflags)
tests_unit_controller_test_pod_event_CFLAGS = $(controller_test_cflags)
tests_unit_controller_test_pod_event_LDADD = $(controller_test_ldadd)
tests_unit_controller_test_pod_policy_SOURCES = tests/unit/controller/test_pod_policy.c tests/unit/controller/pods.h
tests_unit_controller_test_pod_policy_CPPFLAGS = $(controller_test_cppflags)
tests_unit_controller_test_pod_policy_CFLAGS = $(controller_test_cflags)
tests_unit_controller_test_pod_policy_LDADD = $(controller_test_ldadd)

tests_unit_controller_test_pod_spec_SOURCES = tests/unit/controller/test_pod_spec.c tests/unit/controller/pods.h
tests_unit_controller_test_pod_spec_CPPFLAGS = $(controller_test_cppflags)
tests_unit_controller_test_pod_spec_CFLAGS = $(controller_test_cflags)
tests_unit_controller_test_pod_spec_LDADD = $(controller_test_ldadd)

tests_unit_controller_test_pod_status_SOURCES = tests/unit/controller/test_pod_status.c tests/unit/controller/pods.h
tests_unit_controller_test_pod_status_CPPFLAGS = $(controller_test_cppflags)
tests_unit_controller_test_pod_status_CFLAGS = $(controller_test_cflags)
tests_unit_controller_test_pod_status_LDADD = $(controller_test_ldadd)

tests_unit_controller_test_pod_template_SOURCES = tests/unit/controller/test_pod_template.c tests/unit/controller/pods.h
tests_unit_controller_test_pod_template_CPPFLAGS = $(controller_test_cppflags)
tests_unit_controller_test_pod_template_CFLAGS = $(controller_test_cflags)
tests_unit_controller_test_pod_template_LDADD = $(controller_test_ldadd)
endif
