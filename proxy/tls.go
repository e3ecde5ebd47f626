package proxy

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"time"

	"google.golang.org/grpc/credentials/tls/certprovider"
	"google.golang.org/grpc/credentials/tls/certprovider/pemfile"
)

// TLS configures the listeners on TCP. Unix sockets need none: their permissions and the user of the process at the
// other end are enough.
type TLS struct {
	// CertFile and KeyFile are the certificate of the servers, PEM. They are read again when they change.
	CertFile, KeyFile string
	// ClientCAFile has the certificates that sign those of clients, PEM. Empty: clients are not asked for one.
	ClientCAFile string
	// ClientsNeedOne means that a client of the APIs without a certificate is refused. Otherwise an Authorizer decides.
	// A client of AdminAddr always needs one if there is a ClientCAFile, a client of ProbeAddr never.
	ClientsNeedOne bool
}

// certificateRefresh is how often the files of certificates are looked at.
const certificateRefresh = 10 * time.Second

// certificates are the files of a TLS, which are followed until close is called.
type certificates struct {
	TLS
	provider certprovider.Provider
}

func openCertificates(config TLS) (*certificates, error) {
	if config.CertFile == "" && config.KeyFile == "" && config.ClientCAFile == "" {
		return nil, nil
	}
	if config.CertFile == "" || config.KeyFile == "" {
		return nil, fmt.Errorf("TLS needs both a certificate and its key")
	}
	if _, err := tls.LoadX509KeyPair(config.CertFile, config.KeyFile); err != nil {
		return nil, fmt.Errorf("the certificate %s with the key %s: %w", config.CertFile, config.KeyFile, err)
	}
	if config.ClientCAFile != "" {
		if _, err := os.Stat(config.ClientCAFile); err != nil {
			return nil, fmt.Errorf("the CA certificates of clients: %w", err)
		}
	}
	provider, err := pemfile.NewProvider(pemfile.Options{
		CertFile: config.CertFile, KeyFile: config.KeyFile, RootFile: config.ClientCAFile,
		RefreshDuration: certificateRefresh,
	})
	if err != nil {
		return nil, err
	}
	return &certificates{config, provider}, nil
}

// close ends the following of the files. c may be nil.
func (c *certificates) close() {
	if c != nil {
		c.provider.Close()
	}
}

// listen returns a listener over TLS, if c is not nil and the listener is on TCP.
func (c *certificates) listen(listener net.Listener, which int) net.Listener {
	if c == nil || listener.Addr().Network() != "tcp" {
		return listener
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		return c.current(hello.Context(), which)
	}
	return tls.NewListener(listener, config)
}

// current returns the configuration of a connection that begins now.
func (c *certificates) current(ctx context.Context, which int) (*tls.Config, error) {
	material, err := c.provider.KeyMaterial(ctx)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: material.Certs, NextProtos: []string{"http/1.1"}}
	switch which {
	case grpcListener:
		config.NextProtos = []string{"h2"}
	case onePort:
		config.NextProtos = nil // AMQP has no name of its own
	}
	if c.ClientCAFile == "" || which == probeListener {
		return config, nil
	}
	config.ClientCAs, config.ClientAuth = material.Roots, tls.VerifyClientCertIfGiven
	if c.ClientsNeedOne || which == adminListener {
		config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return config, nil
}
