// Package hosts checks the Host header of HTTP requests. A web page in a browser on this machine could map its own name
// to the address of the sidecar (DNS rebinding) to be of the same origin, but cannot hide that name.
package hosts

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/sidebus/sidebus/proxy/wireerror"
	"github.com/sidebus/sidebus/semantics"
)

// Hosts is the set of served names: loopback, the address of the connection, and configured ones.
type Hosts struct {
	all   bool
	names map[string]bool
}

// New returns a Hosts. bound is the listen address, allowed are further names; "*" permits all.
func New(bound string, allowed []string) *Hosts {
	h := &Hosts{names: map[string]bool{"localhost": true}}
	if host, _, err := net.SplitHostPort(bound); err == nil && host != "" {
		h.names[plain(host)] = true
	}
	for _, name := range allowed {
		h.all = h.all || name == "*"
		h.names[plain(name)] = true
	}
	return h
}

// Check refuses a request for another host with INVALID_ARGUMENT and wireerror.ErrMisdirected. Requests over a unix
// socket are permitted, since web pages cannot make them.
func (h *Hosts) Check(r *http.Request) *semantics.Error {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if h.all || r.Host == "" || local == nil || local.Network() == "unix" {
		return nil
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = plain(host)
	if h.names[host] {
		return nil
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		ip = ip.Unmap().WithZone("")
		here, ok := local.(*net.TCPAddr)
		if ip.IsLoopback() || ok && here.AddrPort().Addr().Unmap().WithZone("") == ip {
			return nil
		}
	}
	e := semantics.Errorf(
		semantics.InvalidArgument,
		"host %q is not served; use the listen address, or add the name to --allowed-hosts",
		semantics.Shorten(r.Host),
	).
		With(semantics.DetailField, "Host")
	e.Err = wireerror.ErrMisdirected
	return e
}

// plain returns the normalized form of a host name.
func plain(host string) string {
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}
