package verbs

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
)

// tlsSettings are the flags of verbs that connect to a sidecar with --tls-cert-file.
type tlsSettings struct {
	TLSCAFile      string `name:"tls-ca-file" env:"SIDEBUS_TLS_CA_FILE" placeholder:"FILE" help:"CA certificates, PEM, that sign that of the sidecar. With it, the connection is over TLS."`
	ClientCertFile string `name:"client-cert-file" env:"SIDEBUS_CLIENT_CERT_FILE" placeholder:"FILE" help:"Certificate of this client, PEM, for a sidecar with --tls-client-ca-file."`
	ClientKeyFile  string `name:"client-key-file" env:"SIDEBUS_CLIENT_KEY_FILE" placeholder:"FILE" help:"Key of the certificate of this client, PEM."`
}

// config returns how to connect to a sidecar at addr, or nil for a connection without TLS.
func (s tlsSettings) config(addr string) (*tls.Config, error) {
	hasPair := s.ClientCertFile != "" && s.ClientKeyFile != ""
	switch {
	case (s.ClientCertFile != "") != (s.ClientKeyFile != ""):
		return nil, cli.Misuse("--client-cert-file and --client-key-file belong together; set both")
	case hasPair && s.TLSCAFile == "":
		return nil, cli.Misuse("--client-cert-file needs --tls-ca-file, with which the connection is over TLS")
	case s.TLSCAFile == "" || strings.HasPrefix(addr, "unix://"):
		return nil, nil //nolint:nilnil // no TLS is not an error
	}
	pem, err := os.ReadFile(s.TLSCAFile)
	if err != nil {
		return nil, fmt.Errorf("--tls-ca-file: %w", err)
	}
	host, _, _ := net.SplitHostPort(dialable(addr)) // checked before
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool(), ServerName: host}
	if !config.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("--tls-ca-file: %s has no certificate in PEM", s.TLSCAFile)
	}
	if hasPair {
		pair, err := tls.LoadX509KeyPair(s.ClientCertFile, s.ClientKeyFile)
		if err != nil {
			return nil, fmt.Errorf("--client-cert-file: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
