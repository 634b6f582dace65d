# Checks that belong to no layer. Each layer's fragment names its own unit tests.
AM_TESTS_ENVIRONMENT = srcdir='$(srcdir)'; export srcdir; builddir='$(builddir)'; export builddir;
source_checks = tests/check-format.sh tests/check-layers.sh
TESTS += $(source_checks)
EXTRA_DIST += $(source_checks)

# For runs of the unit tests under another program (scripts/check).
print-test-programs:
	@echo $(filter $(check_PROGRAMS),$(TESTS))
.PHONY: print-test-programs

# What is no source of a program goes into the tarball as it lies there, so that a
# new document or test needs no entry here. Products of a build in place stay out.
dist_trees = .ci bench conf docs examples k8s scripts sdk systemd tests tools
dist-hook:
	cd '$(srcdir)' && { \
		find src agent \( -name '*.h' -o -name '*.md' -o -name '*.mk' -o -name '*.def' \) -type f; \
		for tree in $(dist_trees); do test ! -d $$tree || find $$tree \
			\( -name __pycache__ -o -name .pytest_cache -o -name .deps \) -prune -o \
			\( -type f -o -type l \) ! -name '*.o' ! -name '*.log' ! -name '*.trs' ! -name .dirstamp \
			\( ! -path 'tests/unit/*' -o -name '*.*' \) -print; done; } | \
	while read -r file; do \
		copy='$(abs_top_builddir)/$(distdir)'/$$file; \
		test -e "$$copy" || test -L "$$copy" || \
			{ mkdir -p "$${copy%/*}" && cp -pP "$$file" "$$copy"; } || exit 1; \
	done

# Debian's kernel and each kind of cgroup host, in a virtual machine; see tests/vm/README.md.
.PHONY: check-vm
check-vm: all
	$(top_srcdir)/tests/vm/check-vm .

# Pods of a real kubelet with containerd; see tests/kubelet/README.md.
.PHONY: check-kubelet
check-kubelet: all
	$(top_srcdir)/tests/kubelet/check-kubelet .

# Programs of others that are large or slow; see tests/foreign/README.md.
.PHONY: check-browser
check-browser: all
	$(top_srcdir)/tests/foreign/$@ .

# Runs inside sandboxes: static, and without what the server's objects carry.
check_PROGRAMS += tests/integration/prober
tests_integration_prober_SOURCES = tests/integration/prober.c
tests_integration_prober_CFLAGS = $(WARN_CFLAGS)
tests_integration_prober_LDFLAGS = -static
check_PROGRAMS += tests/k8s/podprint
tests_k8s_podprint_SOURCES = tests/k8s/podprint.c
tests_k8s_podprint_LDADD = src/controller/libcontroller.a src/kube/libkube.a src/ipc/libipc.a src/conf/libconf.a \
	src/base/libbase.a $(YAML_LIBS) $(JSON_LIBS) $(CONFUSE_LIBS) $(MD_LIBS) -lm
