noinst_LIBRARIES += src/spawner/libspawner.a
src_spawner_libspawner_a_SOURCES =
