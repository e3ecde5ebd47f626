package main

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sidebus/sidebus/test/sidecartest"
)

// The SDKs of Azure Service Bus begin with TLS unless told otherwise, and some of them do not say why they fail.
func TestTLSAtAPlainAMQPAddress(t *testing.T) {
	t.Parallel()
	noDir := filepath.Join(t.TempDir(), "file") // an authority cannot be written below a file
	if err := os.WriteFile(noDir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := sidecartest.Start(t, "--store", "memory", "--amqp-addr", "127.0.0.1:0", "--data-dir", noDir)
	conn, err := tls.Dial("tcp", s.AMQP, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // it fails before
	if err == nil {
		_ = conn.Close()
		t.Fatal("the address serves TLS")
	}
	sidecartest.Eventually(t, "the log says what to do", func() bool {
		return strings.Contains(s.Log(), "add UseDevelopmentEmulator=true to the connection string of the SDK, or set --tls-cert-file")
	})
}
