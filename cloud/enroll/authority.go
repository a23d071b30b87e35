package enroll

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"phonerack/cloud/durable"
	"phonerack/cloud/vault"
)

// Files of an authority below the state folder.
const (
	caFile    = "ca.pem"
	caKeyFile = "ca.key"     // sealed by the vault
	caNewFile = "ca.pem.new" // the certificate while there is no key yet: neither is of use alone
)

const (
	caLife     = 20 * 365 * 24 * time.Hour
	clientLife = 5 * 365 * 24 * time.Hour
	serverLife = 90 * 24 * time.Hour
)

var caBinding = vault.Binding{Purpose: "authority", Owner: []string{"ca"}, Version: 1}

// Authority is the installation's own certificate authority, ECDSA P-256.
type Authority struct {
	cert  *x509.Certificate
	key   *ecdsa.PrivateKey
	pem   []byte
	clock func() time.Time
}

// OpenAuthority reads the authority in the folder, or makes one if there is none. Its key is sealed under the vault's
// writing key, and sealed anew when that has changed.
func OpenAuthority(dir string, v *vault.Vault, clock func() time.Time) (*Authority, error) {
	if clock == nil {
		clock = time.Now
	}
	a := &Authority{clock: clock}
	sealed, err := os.ReadFile(filepath.Join(dir, caKeyFile))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(dir, caFile)); err == nil {
			return nil, fmt.Errorf("%s is there without %s: restore it from a backup, or remove both and enrol all racks again", caFile, caKeyFile)
		}
		return a, a.create(dir, v)
	}
	if err != nil {
		return nil, err
	}
	if err := finishCreation(dir); err != nil {
		return nil, err
	}
	if a.pem, err = os.ReadFile(filepath.Join(dir, caFile)); err != nil {
		return nil, err
	}
	block, _ := pem.Decode(a.pem)
	if block == nil {
		return nil, fmt.Errorf("%s is no certificate", caFile)
	}
	if a.cert, err = x509.ParseCertificate(block.Bytes); err != nil {
		return nil, fmt.Errorf("%s: %w", caFile, err)
	}
	secret, err := v.Open(caBinding, sealed)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", caKeyFile, err)
	}
	if a.key, err = parseKey(secret.Reveal()); err != nil {
		return nil, fmt.Errorf("%s: %w", caKeyFile, err)
	}
	if !a.key.PublicKey.Equal(a.cert.PublicKey) {
		return nil, fmt.Errorf("%s and %s do not belong together", caFile, caKeyFile)
	}
	if vault.KeyID(sealed) != v.Writing() {
		return a, a.keep(dir, v)
	}
	return a, nil
}

func (a *Authority) create(dir string, v *vault.Vault) (err error) {
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return err
	}
	serial, err := serialNumber()
	if err != nil {
		return err
	}
	now := a.clock()
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "phonerack " + hex.EncodeToString(serial.Bytes()[:4])},
		NotBefore: now.Add(-24 * time.Hour), NotAfter: now.Add(caLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		return err
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return err
	}
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	// Certificate and key appear together, whenever the power goes: with the key.
	if err := durable.WriteFile(filepath.Join(dir, caNewFile), a.pem, 0o644); err != nil {
		return err
	}
	if err := a.keep(dir, v); err != nil {
		return err
	}
	return finishCreation(dir)
}

// finishCreation gives the certificate its name, unless it has it.
func finishCreation(dir string) error {
	path := filepath.Join(dir, caFile)
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if err := os.Rename(filepath.Join(dir, caNewFile), path); errors.Is(err, fs.ErrNotExist) {
		return nil // reading it says what is missing
	} else if err != nil {
		return err
	}
	return durable.SyncFolder(dir)
}

// keep writes the key, sealed.
func (a *Authority) keep(dir string, v *vault.Vault) error {
	der, err := x509.MarshalPKCS8PrivateKey(a.key)
	if err != nil {
		return err
	}
	sealed, err := v.Seal(caBinding, vault.NewSecret(der))
	if err != nil {
		return err
	}
	return durable.WriteFile(filepath.Join(dir, caKeyFile), sealed, 0o600)
}

// PEM is the authority's certificate.
func (a *Authority) PEM() []byte { return a.pem }

// Pool holds the authority alone.
func (a *Authority) Pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

// client issues a rack's certificate and key, both as PEM.
func (a *Authority) client(tenant, rack string) (cert *x509.Certificate, certPEM, keyPEM []byte, err error) {
	return a.inPEM(&x509.Certificate{
		Subject: pkix.Name{CommonName: rack, Organization: []string{tenant}}, NotAfter: a.clock().Add(clientLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// Broker issues certificate and key, both as PEM, for an external broker that is reached by the names. Servers of a cluster
// may show it to each other too. It is valid for five years.
func (a *Authority) Broker(names []string) (certPEM, keyPEM []byte, err error) {
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "broker"}, NotAfter: a.clock().Add(clientLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	template.IPAddresses, template.DNSNames = addresses(names)
	_, certPEM, keyPEM, err = a.inPEM(template)
	return certPEM, keyPEM, err
}

func (a *Authority) inPEM(template *x509.Certificate) (cert *x509.Certificate, certPEM, keyPEM []byte, err error) {
	der, key, err := a.issue(template)
	if err != nil {
		return nil, nil, nil, err
	}
	if cert, err = x509.ParseCertificate(der); err != nil {
		return nil, nil, nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, nil, err
	}
	return cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), nil
}

// issue signs a template with a key of its own. A certificate is valid from the authority's own beginning: a rack whose
// clock is late is no reason to refuse it.
func (a *Authority) issue(template *x509.Certificate) (der []byte, key *ecdsa.PrivateKey, err error) {
	if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, nil, err
	}
	if template.SerialNumber, err = serialNumber(); err != nil {
		return nil, nil, err
	}
	template.NotBefore, template.BasicConstraintsValid = a.cert.NotBefore, true
	if template.NotAfter.After(a.cert.NotAfter) {
		template.NotAfter = a.cert.NotAfter
	}
	der, err = x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	return der, key, err
}

// Server makes the TLS configuration of a listener with these names and addresses. Its certificate lives in memory alone
// and is replaced while the process runs. Client certificates count if they are shown; none is demanded.
func (a *Authority) Server(names []string) *tls.Config {
	get := a.lasting(func() (*tls.Certificate, error) {
		template := &x509.Certificate{Subject: pkix.Name{CommonName: "rackcloud"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
		template.IPAddresses, template.DNSNames = addresses(names)
		return a.inMemory(template)
	})
	return &tls.Config{
		MinVersion: tls.VersionTLS12, Time: a.clock, ClientCAs: a.Pool(), ClientAuth: tls.VerifyClientCertIfGiven,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return get() },
	}
}

// Peer makes the TLS configuration with which the cloud reaches a broker that has a certificate of the authority. The
// certificate that it shows lives in memory alone and is replaced while the process runs.
func (a *Authority) Peer(name string) *tls.Config {
	get := a.lasting(func() (*tls.Certificate, error) {
		return a.inMemory(&x509.Certificate{Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	})
	return &tls.Config{
		MinVersion: tls.VersionTLS12, Time: a.clock, RootCAs: a.Pool(),
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return get() },
	}
}

// lasting gives the same certificate until a third of its life is left, then another one.
func (a *Authority) lasting(issue func() (*tls.Certificate, error)) func() (*tls.Certificate, error) {
	var mu sync.Mutex // guards current
	var current *tls.Certificate
	return func() (*tls.Certificate, error) {
		mu.Lock()
		defer mu.Unlock()
		if current != nil && a.clock().Before(current.Leaf.NotAfter.Add(-serverLife/3)) {
			return current, nil
		}
		next, err := issue()
		if err == nil {
			current = next
		}
		return current, err
	}
}

// inMemory issues a certificate of a process's life.
func (a *Authority) inMemory(template *x509.Certificate) (*tls.Certificate, error) {
	template.NotAfter, template.KeyUsage = a.clock().Add(serverLife), x509.KeyUsageDigitalSignature
	der, key, err := a.issue(template)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, nil
}

// addresses tells IP addresses from names.
func addresses(names []string) (ips []net.IP, dns []string) {
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			ips = append(ips, ip)
		} else {
			dns = append(dns, n)
		}
	}
	return ips, dns
}

// fingerprint is how the database knows a certificate.
func fingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return hex.EncodeToString(sum[:])
}

func serialNumber() (*big.Int, error) {
	b := make([]byte, 16)
	if _, err := rand.Read(b); err != nil {
		return nil, err
	}
	b[0] = b[0]&0x7f | 0x40 // positive, and of one length
	return new(big.Int).SetBytes(b), nil
}

func parseKey(der []byte) (*ecdsa.PrivateKey, error) {
	k, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, errors.New("it holds no private key") // the error might quote it
	}
	key, ok := k.(*ecdsa.PrivateKey)
	if !ok {
		return nil, errors.New("it holds another kind of key")
	}
	return key, nil
}
