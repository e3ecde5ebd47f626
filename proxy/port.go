package proxy

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/sidebus/sidebus/proxy/internal/authority"
	"github.com/sidebus/sidebus/proxy/internal/oneport"
)

// onePort stands for the listeners of Config.AMQPAddrs.
const onePort = listenerCount

// amqpTLS returns the certificate that is only for AMQPAddrs. Clients need what they need at the other addresses.
func (c Config) amqpTLS() TLS {
	if c.AMQPCertFile == "" && c.AMQPKeyFile == "" {
		return TLS{}
	}
	only := c.TLS
	only.CertFile, only.KeyFile = c.AMQPCertFile, c.AMQPKeyFile
	return only
}

// openPort opens Config.AMQPAddrs.
func (p *Proxy) openPort(ctx context.Context) error {
	if len(p.config.AMQPAddrs) == 0 {
		return nil
	}
	port := oneport.New(p.portConfig(ctx))
	for _, addr := range p.config.AMQPAddrs {
		listener, err := listen(ctx, "--amqp-addr", addr, p.config.SocketMode)
		if err != nil {
			port.Close()
			return err
		}
		port.Add(listener)
		p.amqpAt = append(p.amqpAt, listener.Addr())
	}
	p.port = port
	return nil
}

// portConfig returns how Config.AMQPAddrs serve over TLS. If there is a certificate for all addresses, nothing is
// served without TLS there: a client certificate may be all that protects them.
func (p *Proxy) portConfig(ctx context.Context) oneport.Config {
	config := oneport.Config{NeedsTLS: p.certificates != nil}
	if from := cmp.Or(p.amqpCertificates, p.certificates); from != nil {
		config.TLS = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			return from.current(hello.Context(), onePort)
		}
		return config
	}
	isOnTCP := slices.ContainsFunc(p.config.AMQPAddrs, func(addr string) bool { return !strings.HasPrefix(addr, "unix://") })
	if p.config.AuthorityDir == "" || !isOnTCP {
		return config
	}
	own, err := authority.Open(p.config.AuthorityDir, p.certificateNames())
	if err != nil {
		p.logger.WarnContext(
			ctx, "no certificate authority; the addresses of AMQP are served without TLS", "dir", p.config.AuthorityDir,
			"error", err,
		)
		return config
	}
	p.authority = own
	config.TLS = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		certificate, err := own.Certificate()
		if err != nil {
			return nil, err
		}
		return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*certificate}}, nil
	}
	return config
}

// amqpHosts are the hosts of AMQPAddrs.
func (c Config) amqpHosts() (names []string) {
	for _, addr := range c.AMQPAddrs {
		if host, _, err := net.SplitHostPort(addr); err == nil && host != "" {
			names = append(names, host)
		}
	}
	return names
}

// certificateNames are the names under which clients may reach Config.AMQPAddrs.
func (p *Proxy) certificateNames() []string {
	names := []string{"localhost", "127.0.0.1", "::1"}
	if name, err := os.Hostname(); err == nil {
		names = append(names, name)
	}
	names = append(names, p.config.amqpHosts()...)
	for _, name := range p.config.AllowedHosts {
		if name != "*" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
