# Units for systemd, and the service user for systemd-sysusers.
nodist_systemdsystemunit_DATA = systemd/orchardd.service
dist_systemdsystemunit_DATA = systemd/orchard-sandboxes.service
sysusersdir = $(prefix)/lib/sysusers.d
EXTRA_DIST += systemd/orchardd.service.in systemd/orchard.sysusers
CLEANFILES += systemd/orchardd.service

systemd/orchardd.service: systemd/orchardd.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) systemd && $(SED) 's|@sbindir[@]|$(sbindir)|g' '$(srcdir)/systemd/orchardd.service.in' >$@.tmp && mv $@.tmp $@

install-sysusers:
	$(MKDIR_P) '$(DESTDIR)$(sysusersdir)'
	$(INSTALL_DATA) '$(srcdir)/systemd/orchard.sysusers' '$(DESTDIR)$(sysusersdir)/orchard.conf'
uninstall-sysusers:
	rm -f '$(DESTDIR)$(sysusersdir)/orchard.conf'

# An orchard.conf that is there already is the operator's; only an unchanged one is removed.
EXTRA_DIST += conf/orchard.conf
install-conf:
	$(MKDIR_P) '$(DESTDIR)$(sysconfdir)/orchard'
	test -e '$(DESTDIR)$(sysconfdir)/orchard/orchard.conf' || \
		$(INSTALL_DATA) '$(srcdir)/conf/orchard.conf' '$(DESTDIR)$(sysconfdir)/orchard/orchard.conf'
uninstall-conf:
	! cmp -s '$(srcdir)/conf/orchard.conf' '$(DESTDIR)$(sysconfdir)/orchard/orchard.conf' || \
		rm -f '$(DESTDIR)$(sysconfdir)/orchard/orchard.conf'

install-data-local: install-sysusers install-conf
uninstall-local: uninstall-sysusers uninstall-conf
.PHONY: install-sysusers uninstall-sysusers install-conf uninstall-conf
