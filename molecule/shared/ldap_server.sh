#!/bin/sh
# Makes this machine an LDAP server for dc=site,dc=example with TLS: ldap_server.sh NAME READERS-PASSWORD <PEOPLE.ldif
# In /srv/directory: its authority (ca.crt), and another that it has nothing to do with (other.crt). Unit: directory.
set -eu
name=$1
password=$2
place=/srv/directory
mkdir -p "$place/db"
cd "$place"
curve="-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
for authority in ca other; do
  openssl req -quiet -x509 $curve -days 30 -subj "/CN=$authority" -keyout "$authority.key" -out "$authority.crt"
done
openssl req -quiet $curve -subj "/CN=$name" -keyout server.key -out server.csr
echo "subjectAltName=DNS:$name" > server.ext
openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -days 30 -extfile server.ext -out server.crt
cat > slapd.conf <<END
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/nis.schema
include /etc/ldap/schema/inetorgperson.schema
attributetype ( 1.3.6.1.4.1.24552.500.1.1.1.13 NAME 'sshPublicKey' EQUALITY octetStringMatch
  SYNTAX 1.3.6.1.4.1.1466.115.121.1.40 )
objectclass ( 1.3.6.1.4.1.24552.500.1.1.2.0 NAME 'ldapPublicKey' SUP top AUXILIARY MAY ( sshPublicKey \$ uid ) )
modulepath /usr/lib/ldap
moduleload back_mdb
pidfile $place/slapd.pid
TLSCertificateFile $place/server.crt
TLSCertificateKeyFile $place/server.key
TLSCACertificateFile $place/ca.crt
# In the clear nobody is told anything but how to begin TLS.
security tls=128
database mdb
suffix dc=site,dc=example
rootdn cn=root,dc=site,dc=example
rootpw $(slappasswd -s "$password")
directory $place/db
access to attrs=userPassword by anonymous auth by * none
access to * by dn.exact=cn=reader,dc=site,dc=example read by anonymous auth by * none
END
{
  cat <<END
dn: dc=site,dc=example
objectClass: dcObject
objectClass: organization
dc: site
o: Site

dn: cn=reader,dc=site,dc=example
objectClass: organizationalRole
objectClass: simpleSecurityObject
cn: reader
userPassword: $(slappasswd -s "$password")

END
  cat
} > people.ldif
chmod 600 people.ldif slapd.conf ./*.key
slapadd -q -f slapd.conf -l people.ldif
systemctl disable --now slapd 2>/dev/null || true
cat > /etc/systemd/system/directory.service <<END
[Service]
ExecStart=/usr/sbin/slapd -f $place/slapd.conf -h "ldap:/// ldaps:///" -d 0
[Install]
WantedBy=multi-user.target
END
systemctl daemon-reload
systemctl enable --now directory
