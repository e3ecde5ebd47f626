package authority_test

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sidebus/sidebus/proxy/internal/authority"
)

// roots returns what a client that trusts the file trusts.
func roots(t *testing.T, file string) *x509.CertPool {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "KEY") {
		t.Errorf("%s has a key", file)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		t.Fatalf("%s has no certificate", file)
	}
	return pool
}

func TestCertificatesAreTrusted(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "dir")
	names := []string{"localhost", "127.0.0.1", "::1", "sidebus.example"}
	first, err := authority.Open(dir, names)
	if err != nil {
		t.Fatal(err)
	}
	pool := roots(t, first.File)
	again, err := authority.Open(dir, names) // the next start of the sidecar
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []*authority.Authority{first, again} {
		certificate, err := a.Certificate()
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if _, err := certificate.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: pool}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := certificate.Leaf.VerifyHostname("other"); err == nil {
			t.Error("another name is trusted")
		}
		if same, _ := a.Certificate(); same != certificate {
			t.Error("the certificate is not kept")
		}
	}
	info, err := os.Stat(filepath.Join(dir, "ca-and-key.pem"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key: %v, %v", info.Mode(), err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 2 {
		t.Errorf("files: %v, %v", files, err)
	}
}

func TestSidecarsThatStartTogetherHaveOneAuthority(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	all := make([]*authority.Authority, 8)
	var work sync.WaitGroup
	for i := range all {
		work.Go(func() {
			var err error
			if all[i], err = authority.Open(dir, []string{"localhost"}); err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
	if t.Failed() {
		return
	}
	pool := roots(t, all[0].File)
	for i, a := range all {
		certificate, err := a.Certificate()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := certificate.Leaf.Verify(x509.VerifyOptions{DNSName: "localhost", Roots: pool}); err != nil {
			t.Errorf("sidecar %d: %v", i, err)
		}
	}
}

func TestFilesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := authority.Open(filepath.Join(dir, "file"), nil); err == nil {
		t.Error("a file is taken for a directory")
	}
	if err := os.WriteFile(filepath.Join(dir, "ca-and-key.pem"), []byte("no"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := authority.Open(dir, nil); err == nil {
		t.Error("a file without a certificate is used as an authority")
	}
}
