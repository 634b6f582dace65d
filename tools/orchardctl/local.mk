# The command-line client. It stands on src/base, and speaks to the server by its REST API like any other client. Its
# doctor reads settings, and asks Redis and the API server, by the same code as the server does.
noinst_LIBRARIES += tools/orchardctl/libctl.a
ctl_cppflags = $(AM_CPPFLAGS) -I$(top_srcdir)/tools
ctl_cflags = $(AM_CFLAGS) $(EVENT_CFLAGS) $(CURL_CFLAGS) $(YAML_CFLAGS) $(WEBSOCKETS_CFLAGS)
ctl_ldadd = tools/orchardctl/libctl.a src/kube/libkube.a src/redis/libredis.a src/conf/libconf.a \
	src/base/libbase.a $(EVENT_LIBS) $(EVENT_EXTRA_LIBS) $(CONFUSE_LIBS) $(HIREDIS_LIBS) \
	$(CURL_LIBS) $(YAML_LIBS) $(WEBSOCKETS_LIBS) $(ARCHIVE_LIBS) $(JSON_LIBS) $(MD_LIBS) -lm
tools_orchardctl_libctl_a_CPPFLAGS = $(ctl_cppflags)
tools_orchardctl_libctl_a_CFLAGS = $(ctl_cflags)
tools_orchardctl_libctl_a_SOURCES = \
	tools/orchardctl/args.c \
	tools/orchardctl/args.h \
	tools/orchardctl/attach/attach.c \
	tools/orchardctl/attach/attach.h \
	tools/orchardctl/attach/feed.c \
	tools/orchardctl/attach/feed.h \
	tools/orchardctl/attach/follow.c \
	tools/orchardctl/attach/follow.h \
	tools/orchardctl/attach/sse.c \
	tools/orchardctl/attach/sse.h \
	tools/orchardctl/client/client.c \
	tools/orchardctl/client/client.h \
	tools/orchardctl/client/client_impl.h \
	tools/orchardctl/client/here.c \
	tools/orchardctl/client/here.h \
	tools/orchardctl/client/path.c \
	tools/orchardctl/client/path.h \
	tools/orchardctl/client/problem.c \
	tools/orchardctl/client/problem.h \
	tools/orchardctl/client/signals.c \
	tools/orchardctl/client/signals.h \
	tools/orchardctl/client/transfer.c \
	tools/orchardctl/command.h \
	tools/orchardctl/command_table.c \
	tools/orchardctl/commands/cmd_cancel.c \
	tools/orchardctl/commands/cmd_config.c \
	tools/orchardctl/commands/cmd_create.c \
	tools/orchardctl/commands/cmd_exec.c \
	tools/orchardctl/commands/cmd_get.c \
	tools/orchardctl/commands/cmd_heartbeat.c \
	tools/orchardctl/commands/cmd_help.c \
	tools/orchardctl/commands/cmd_jobs.c \
	tools/orchardctl/commands/cmd_logs.c \
	tools/orchardctl/commands/cmd_ls.c \
	tools/orchardctl/commands/cmd_patch.c \
	tools/orchardctl/commands/cmd_resources.c \
	tools/orchardctl/commands/cmd_rm.c \
	tools/orchardctl/commands/cmd_run.c \
	tools/orchardctl/commands/cmd_update.c \
	tools/orchardctl/commands/cmd_version.c \
	tools/orchardctl/commands/cmd_wait.c \
	tools/orchardctl/commands/commands.h \
	tools/orchardctl/commands/exec_call.c \
	tools/orchardctl/commands/exec_call.h \
	tools/orchardctl/commands/job_find.c \
	tools/orchardctl/commands/job_find.h \
	tools/orchardctl/commands/job_view.c \
	tools/orchardctl/commands/job_view.h \
	tools/orchardctl/commands/make.c \
	tools/orchardctl/commands/make.h \
	tools/orchardctl/commands/options.h \
	tools/orchardctl/commands/sandbox_view.c \
	tools/orchardctl/commands/sandbox_view.h \
	tools/orchardctl/commands/spec.c \
	tools/orchardctl/commands/spec.h \
	tools/orchardctl/contexts.c \
	tools/orchardctl/contexts.h \
	tools/orchardctl/ctl.c \
	tools/orchardctl/help.c \
	tools/orchardctl/help.h \
	tools/orchardctl/nearest.c \
	tools/orchardctl/nearest.h \
	tools/orchardctl/output/cell.c \
	tools/orchardctl/output/cell.h \
	tools/orchardctl/output/print.c \
	tools/orchardctl/output/print.h \
	tools/orchardctl/output/yaml.c \
	tools/orchardctl/texts/cmd_man.c

bin_PROGRAMS += tools/orchardctl/orchardctl
tools_orchardctl_orchardctl_SOURCES = tools/orchardctl/main.c
tools_orchardctl_orchardctl_CPPFLAGS = $(ctl_cppflags)
tools_orchardctl_orchardctl_CFLAGS = $(ctl_cflags)
tools_orchardctl_orchardctl_LDADD = $(ctl_ldadd)

# The program writes them from its table of commands.
nodist_man1_MANS = tools/orchardctl/orchardctl.1
bashcompletiondir = $(datadir)/bash-completion/completions
nodist_bashcompletion_DATA = tools/orchardctl/completion/orchardctl
zshcompletiondir = $(datadir)/zsh/site-functions
nodist_zshcompletion_DATA = tools/orchardctl/completion/_orchardctl
fishcompletiondir = $(datadir)/fish/vendor_completions.d
nodist_fishcompletion_DATA = tools/orchardctl/completion/orchardctl.fish
ctl_texts = $(nodist_man1_MANS) $(nodist_bashcompletion_DATA) $(nodist_zshcompletion_DATA) $(nodist_fishcompletion_DATA)
CLEANFILES += $(ctl_texts)
ctl_write_text = $(AM_V_GEN)$(MKDIR_P) $(@D) && tools/orchardctl/orchardctl $(1) >$@.tmp && mv $@.tmp $@

tools/orchardctl/orchardctl.1: tools/orchardctl/orchardctl
	$(call ctl_write_text,man)
tools/orchardctl/completion/orchardctl: tools/orchardctl/orchardctl
	$(call ctl_write_text,completion bash)
tools/orchardctl/completion/_orchardctl: tools/orchardctl/orchardctl
	$(call ctl_write_text,completion zsh)
tools/orchardctl/completion/orchardctl.fish: tools/orchardctl/orchardctl
	$(call ctl_write_text,completion fish)

if HAVE_CMOCKA
ctl_tests = \
	tests/unit/ctl/test_args \
	tests/unit/ctl/test_cell \
	tests/unit/ctl/test_here \
	tests/unit/ctl/test_sse
check_PROGRAMS += $(ctl_tests)
TESTS += $(ctl_tests)
ctl_test_cflags = $(ctl_cflags) $(CMOCKA_CFLAGS)
ctl_test_ldadd = $(ctl_ldadd) $(CMOCKA_LIBS)

tests_unit_ctl_test_args_SOURCES = tests/unit/ctl/test_args.c
tests_unit_ctl_test_args_CPPFLAGS = $(ctl_cppflags)
tests_unit_ctl_test_args_CFLAGS = $(ctl_test_cflags)
tests_unit_ctl_test_args_LDADD = $(ctl_test_ldadd)

tests_unit_ctl_test_here_SOURCES = tests/unit/ctl/test_here.c
tests_unit_ctl_test_here_CPPFLAGS = $(ctl_cppflags)
tests_unit_ctl_test_here_CFLAGS = $(ctl_test_cflags)
tests_unit_ctl_test_here_LDADD = $(ctl_test_ldadd)

tests_unit_ctl_test_sse_SOURCES = tests/unit/ctl/test_sse.c
tests_unit_ctl_test_sse_CPPFLAGS = $(ctl_cppflags)
tests_unit_ctl_test_sse_CFLAGS = $(ctl_test_cflags)
tests_unit_ctl_test_sse_LDADD = $(ctl_test_ldadd)

tests_unit_ctl_test_cell_SOURCES = tests/unit/ctl/test_cell.c
tests_unit_ctl_test_cell_CPPFLAGS = $(ctl_cppflags)
tests_unit_ctl_test_cell_CFLAGS = $(ctl_test_cflags)
tests_unit_ctl_test_cell_LDADD = $(ctl_test_ldadd)
endif
