package settings

import (
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// checkAddresses checks what the sidecar listens on.
func (s *Settings) checkAddresses() error {
	addresses := []struct{ flag, value string }{
		{"http-addr", s.HTTPAddr},
		{"grpc-addr", s.GRPCAddr},
		{"admin-addr", s.AdminAddr},
		{"probe-addr", s.ProbeAddr},
	}
	for _, addr := range s.AMQPAddresses() {
		addresses = append(addresses, struct{ flag, value string }{"amqp-addr", addr})
	}
	taken := map[string]string{}
	for _, a := range addresses {
		if a.flag == "probe-addr" && a.value == "" {
			continue
		}
		if err := CheckAddress(a.flag, a.value); err != nil {
			return err
		}
		if other, twice := taken[a.value]; twice && !strings.HasSuffix(a.value, ":0") {
			return fmt.Errorf("--%s and --%s are both %s; each needs its own address", other, a.flag, a.value)
		}
		taken[a.value] = a.flag
	}
	_, err := s.FileMode()
	return err
}

// AMQPAddresses returns the addresses of AMQP.
func (s *Settings) AMQPAddresses() (addresses []string) {
	if s.AMQPAddr == "" {
		return nil
	}
	for addr := range strings.SplitSeq(s.AMQPAddr, ",") {
		addresses = append(addresses, strings.TrimSpace(addr))
	}
	return addresses
}

// CheckAddress accepts host:port, with port 0 for any free one, and unix:///path.
func CheckAddress(flag, value string) error {
	if path, isUnix := strings.CutPrefix(value, "unix://"); isUnix {
		if !strings.HasPrefix(path, "/") {
			return Bad(flag, "is %q, must be unix:///absolute/path", value)
		}
		return nil
	}
	_, port, err := net.SplitHostPort(value)
	if err != nil {
		return Bad(flag, "is %q, must be host:port or unix:///path", value)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return Bad(flag, "is %q, its port must be 0 to 65535", value)
	}
	return nil
}

// checkOTLPEndpoint refuses what is not the URL of a collector. Credentials belong into a variable, because settings
// are shown.
func (s *Settings) checkOTLPEndpoint() error {
	if s.OTLPEndpoint == "" {
		return nil
	}
	to, err := url.Parse(s.OTLPEndpoint)
	switch {
	case err != nil || to.Host == "" || to.Scheme != "http" && to.Scheme != "https":
		return Bad("otlp-endpoint", "must be a URL such as http://127.0.0.1:4317, with http:// or https://")
	case to.User != nil || to.RawQuery != "" || to.Fragment != "":
		return Bad("otlp-endpoint", "must have neither user nor query; put credentials into OTEL_EXPORTER_OTLP_HEADERS")
	default:
		return nil
	}
}

// FileMode returns the permissions that unix sockets get.
func (s *Settings) FileMode() (fs.FileMode, error) {
	mode, err := strconv.ParseUint(s.SocketMode, 8, 32)
	if err != nil || mode > 0o777 || mode&0o200 == 0 {
		return 0, Bad(
			"socket-mode",
			"is %q, must be octal permissions from 0200 to 0777 with which the owner may write, such as 0660",
			s.SocketMode,
		)
	}
	return fs.FileMode(mode), nil
}
