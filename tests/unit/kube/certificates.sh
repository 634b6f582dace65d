#!/bin/sh
# certificates.sh DIR: two authorities (ca, other), and of the first a server's by address, one's by name, a client's, and a
# server's whose time is over.
set -eu
cd "$1"
make() {
	name=$1
	shift
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=$name" \
		-keyout "$name.key" -out "$name.crt" "$@" 2>>log
}
make ca -addext basicConstraints=critical,CA:TRUE
make other -addext basicConstraints=critical,CA:TRUE
for kind in address=subjectAltName=IP:127.0.0.1 name=subjectAltName=DNS:api.test client=extendedKeyUsage=clientAuth; do
	make "${kind%%=*}" -CA ca.crt -CAkey ca.key -addext basicConstraints=critical,CA:FALSE -addext "${kind#*=}"
done
openssl x509 -x509toreq -in address.crt -signkey address.key -copy_extensions copyall -out expired.csr 2>>log
openssl x509 -req -in expired.csr -CA ca.crt -CAkey ca.key -copy_extensions copyall -days -1 -out expired.crt 2>>log
cp address.key expired.key
