// Package authority is a certificate authority of the sidecar's own, for clients that insist on TLS where the operator
// has provided no certificates. Its file in the data directory is made once, and clients are told to trust it. The
// certificates that it signs are kept in memory only.
package authority

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
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
)

// Names of the files.
const (
	CertFile = "ca.pem"         // what clients trust
	keyFile  = "ca-and-key.pem" // the same, and its key
)

// Validity of what is made. A certificate is replaced when a third of its time is left.
const (
	authorityTime   = 10 * 365 * 24 * time.Hour
	certificateTime = 90 * 24 * time.Hour
	backdate        = time.Hour // for clients whose clock is behind
)

// Authority signs certificates for its names. It is safe for concurrent use.
type Authority struct {
	File  string // what clients trust
	names []string
	root  *x509.Certificate
	key   crypto.Signer

	mu      sync.Mutex
	current *tls.Certificate
}

// Open returns the authority in a directory, which is created if it is missing. names are the host names and addresses
// of its certificates. Sidecars that start at the same time have the same authority.
func Open(dir string, names []string) (*Authority, error) {
	a := &Authority{File: filepath.Join(dir, CertFile), names: names}
	path := filepath.Join(dir, keyFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		text, err = create(dir, path)
	}
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(text, text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	a.root, a.key = pair.Leaf, pair.PrivateKey.(crypto.Signer) //nolint:forcetypeassert // all keys are
	if !a.root.IsCA || time.Now().After(a.root.NotAfter) {
		return nil, fmt.Errorf("%s: is not an authority, or has expired; delete the file to get another one", path)
	}
	trusted := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.root.Raw})
	if there, err := os.ReadFile(a.File); err == nil && bytes.Equal(there, trusted) {
		return a, nil
	}
	return a, write(dir, a.File, trusted, 0o644, os.Rename)
}

// create makes an authority and its file, unless another sidecar has done so meanwhile. It returns what is there.
func create(dir, path string) ([]byte, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // the app must find what it is to trust
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template, err := template("Sidebus authority", authorityTime)
	if err != nil {
		return nil, err
	}
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign
	root, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	text := append(
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})...,
	)
	if err := write(dir, path, text, 0o600, os.Link); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return os.ReadFile(path)
}

// write writes a file whole. put renames the temporary file.
func write(dir, path string, text []byte, mode fs.FileMode, put func(from, to string) error) error {
	file, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) //nolint:errcheck // it may have its name already
	_, err = file.Write(text)
	err = errors.Join(err, file.Chmod(mode), file.Sync(), file.Close())
	if err != nil {
		return err
	}
	return put(file.Name(), path)
}

func template(name string, valid time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-backdate), NotAfter: now.Add(valid),
	}, nil
}

// Certificate returns a certificate that is valid for some time.
func (a *Authority) Certificate() (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.current != nil && time.Until(a.current.Leaf.NotAfter) > certificateTime/3 {
		return a.current, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	leaf, err := template("Sidebus", certificateTime)
	if err != nil {
		return nil, err
	}
	leaf.KeyUsage, leaf.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, name := range a.names {
		if ip := net.ParseIP(name); ip != nil {
			leaf.IPAddresses = append(leaf.IPAddresses, ip)
		} else {
			leaf.DNSNames = append(leaf.DNSNames, name)
		}
	}
	raw, err := x509.CreateCertificate(rand.Reader, leaf, a.root, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParseCertificate(raw)
	if err != nil {
		return nil, err
	}
	a.current = &tls.Certificate{Certificate: [][]byte{raw, a.root.Raw}, PrivateKey: key, Leaf: parsed}
	return a.current, nil
}
