package redisstore_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
)

// authority makes certificates and writes them as PEM files into a folder.
type authority struct {
	t      *testing.T
	folder string
	name   string
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{t: t, folder: t.TempDir(), name: name}
	a.cert, a.key = a.issue(name, &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

// issue writes <name>.crt and <name>.key; the first certificate signs itself.
func (a *authority) issue(name string, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.Subject = pkix.Name{CommonName: name}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(name+".crt", "CERTIFICATE", der)
	a.write(name+".key", "EC PRIVATE KEY", secret)
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key
}

func (a *authority) write(file, kind string, der []byte) {
	a.t.Helper()
	if err := os.WriteFile(a.path(file), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

func (a *authority) path(file string) string { return filepath.Join(a.folder, file) }

// A Redis behind TLS that asks for a client certificate is reached with the right files, and with wrong ones not.
func TestTLS(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "ca")
	ca.issue("server", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	ca.issue("client", &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	port := freePort(t)
	server := redistest.Start(t, "--tls-port", strconv.Itoa(port), "--bind", "127.0.0.1", "--tls-ca-cert-file", ca.path("ca.crt"),
		"--tls-cert-file", ca.path("server.crt"), "--tls-key-file", ca.path("server.key"), "--tls-auth-clients", "yes")
	t.Cleanup(server.Stop)
	options := redisstore.Options{
		URL:       "rediss://127.0.0.1:" + strconv.Itoa(port),
		TLSCAFile: ca.path("ca.crt"), TLSCertFile: ca.path("client.crt"), TLSKeyFile: ca.path("client.key"),
	}
	s := redistest.Open(t, options)
	if _, err := s.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	create(t, s)
	if _, err := s.Send(t.Context(), "orders", message(10)); err != nil {
		t.Fatal(err)
	}
	receiveOne(t, s)

	stranger := newAuthority(t, "stranger")
	stranger.issue("client", &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	for name, change := range map[string]func(*redisstore.Options){
		"server of another authority": func(o *redisstore.Options) { o.TLSCAFile = stranger.path("stranger.crt") },
		"client of another authority": func(o *redisstore.Options) {
			o.TLSCertFile, o.TLSKeyFile = stranger.path("client.crt"), stranger.path("client.key")
		},
		"no client certificate": func(o *redisstore.Options) { o.TLSCertFile, o.TLSKeyFile = "", "" },
		"no TLS":                func(o *redisstore.Options) { o.URL = "redis://127.0.0.1:" + strconv.Itoa(port) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wrong := options
			change(&wrong)
			if _, err := redistest.Open(t, wrong).Check(t.Context()); semantics.CodeOf(err) != semantics.StoreUnavailable {
				t.Errorf("got %v, want STORE_UNAVAILABLE", err)
			}
		})
	}
}

// freePort finds a port that nobody listens on.
func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}
