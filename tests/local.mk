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
dist_trees = .ci bench conf docs k8s scripts sdk systemd tests tools
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

# Debian's kernel and a pure cgroup v2 host, in a virtual machine; see tests/vm/README.md.
.PHONY: check-vm
check-vm: all
	$(top_srcdir)/tests/vm/check-vm .
