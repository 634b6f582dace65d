# Checks that belong to no layer. Each layer's fragment names its own unit tests.
AM_TESTS_ENVIRONMENT = srcdir='$(srcdir)'; export srcdir; builddir='$(builddir)'; export builddir;
TESTS += tests/check-layers.sh
EXTRA_DIST += tests/check-layers.sh
