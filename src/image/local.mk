noinst_LIBRARIES += src/image/libimage.a
src_image_libimage_a_SOURCES = \
	src/image/docker_archive.c \
	src/image/docker_archive.h \
	src/image/image.c \
	src/image/image.h \
	src/image/image_name.c \
	src/image/image_name.h \
	src/image/image_notes.c \
	src/image/image_notes.h \
	src/image/image_sweep.c \
	src/image/image_sweep.h \
	src/image/imager.c \
	src/image/imager.h \
	src/image/imager_archive.c \
	src/image/imager_priv.h \
	src/image/imager_registry.c \
	src/image/layer_file.c \
	src/image/layer_file.h \
	src/image/layer_frame.c \
	src/image/layer_frame.h \
	src/image/layer_store.c \
	src/image/layer_store.h \
	src/image/layer_tree.c \
	src/image/layer_tree.h \
	src/image/oci_blob.c \
	src/image/oci_blob.h \
	src/image/oci_layout.c \
	src/image/oci_layout.h \
	src/image/oci_manifest.c \
	src/image/oci_manifest.h \
	src/image/pull_cage.c \
	src/image/pull_cage.h \
	src/image/pull_words.c \
	src/image/pull_words.h \
	src/image/puller.c \
	src/image/puller.h \
	src/image/unpack.c \
	src/image/unpack.h \
	src/image/unpack_cage.c \
	src/image/unpack_cage.h \
	src/image/unpack_tar.c

if HAVE_CMOCKA
image_tests =  \
	tests/unit/image/test_cage \
	tests/unit/image/test_imager \
	tests/unit/image/test_layer
check_PROGRAMS += $(image_tests)
TESTS += $(image_tests)
image_test_cflags = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
image_test_ldadd = src/image/libimage.a src/conf/libconf.a src/base/libbase.a $(CMOCKA_LIBS) $(JSON_LIBS) $(CONFUSE_LIBS) $(ARCHIVE_LIBS) \
	$(MD_LIBS) $(CAP_LIBS) $(SECCOMP_LIBS)
image_test_cppflags = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/unit/image
image_test_kit = tests/unit/image/layout_kit.c tests/unit/image/layout_kit.h

tests_unit_image_test_cage_SOURCES = tests/unit/image/test_cage.c $(image_test_kit)
tests_unit_image_test_cage_CPPFLAGS = $(image_test_cppflags)
tests_unit_image_test_cage_CFLAGS = $(image_test_cflags)
tests_unit_image_test_cage_LDADD = $(image_test_ldadd)

tests_unit_image_test_imager_SOURCES = tests/unit/image/test_imager.c $(image_test_kit)
tests_unit_image_test_imager_CPPFLAGS = $(image_test_cppflags)
tests_unit_image_test_imager_CFLAGS = $(image_test_cflags)
tests_unit_image_test_imager_LDADD = $(image_test_ldadd)

tests_unit_image_test_layer_SOURCES = tests/unit/image/test_layer.c $(image_test_kit)
tests_unit_image_test_layer_CPPFLAGS = $(image_test_cppflags)
tests_unit_image_test_layer_CFLAGS = $(image_test_cflags)
tests_unit_image_test_layer_LDADD = $(image_test_ldadd)
endif
