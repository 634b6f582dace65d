noinst_LIBRARIES += src/http/libhttp.a
src_http_libhttp_a_SOURCES = \
	src/http/http_client.h \
	src/http/http_parser.h \
	src/http/http_server.h
