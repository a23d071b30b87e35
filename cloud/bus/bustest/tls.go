package bustest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"phonerack/cloud/bus"
)

// Authority issues certificates for tests. A nil one stands for no TLS.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority makes one.
func NewAuthority() *Authority {
	a := &Authority{key: newKey()}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of a test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.cert = a.sign(template, template, &a.key.PublicKey)
	return a
}

func newKey() *ecdsa.PrivateKey {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return k
}

func (a *Authority) sign(template, parent *x509.Certificate, public *ecdsa.PublicKey) *x509.Certificate {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, a.key)
	if err != nil {
		panic(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	return c
}

// Issue makes a certificate for client and server use.
func (a *Authority) Issue(name string) tls.Certificate {
	key := newKey()
	serial, _ := rand.Int(rand.Reader, big.NewInt(1<<62))
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(name); ip != nil {
		template.IPAddresses = []net.IP{ip}
	}
	c := a.sign(template, a.cert, &key.PublicKey)
	return tls.Certificate{Certificate: [][]byte{c.Raw}, PrivateKey: key, Leaf: c}
}

// Pool holds the authority alone.
func (a *Authority) Pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

// Client is the configuration of a client that trusts the authority, and shows a certificate unless name is "".
func (a *Authority) Client(name string) *tls.Config {
	if a == nil {
		return nil
	}
	c := &tls.Config{RootCAs: a.Pool(), MinVersion: tls.VersionTLS12}
	if name != "" {
		c.Certificates = []tls.Certificate{a.Issue(name)}
	}
	return c
}

// Server is the configuration of a listener on 127.0.0.1 that takes certificates of the authority if they are shown.
func (a *Authority) Server() *tls.Config {
	return &tls.Config{
		Certificates: []tls.Certificate{a.Issue("127.0.0.1")}, ClientCAs: a.Pool(), ClientAuth: tls.VerifyClientCertIfGiven,
		MinVersion: tls.VersionTLS12,
	}
}

// Files writes a certificate, its key and the authority as PEM files.
func (a *Authority) Files(t testing.TB, name string) *bus.NATSFiles {
	t.Helper()
	dir := t.TempDir()
	f := &bus.NATSFiles{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem"), CA: filepath.Join(dir, "ca.pem")}
	c := a.Issue(name)
	key, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for path, b := range map[string]*pem.Block{
		f.Cert: {Type: "CERTIFICATE", Bytes: c.Certificate[0]},
		f.Key:  {Type: "PRIVATE KEY", Bytes: key},
		f.CA:   {Type: "CERTIFICATE", Bytes: a.cert.Raw},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return f
}
