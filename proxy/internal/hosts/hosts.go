// Package hosts decides for which names requests over HTTP are served. A page of a browser on this machine can give its
// own name the address of the sidecar ("DNS rebinding") and is then of the same origin for the browser; what it cannot
// do is hide that name.
package hosts

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/sidebus/sidebus/proxy/wireerror"
	"github.com/sidebus/sidebus/semantics"
)

// Hosts are the names that are served: loopback, the address of the connection, and those that were given.
type Hosts struct {
	all   bool
	names map[string]bool
}

// New makes a Hosts. bound is the address that is listened on, allowed what else is served; "*" stands for everything.
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

// Check refuses a request for another host with INVALID_ARGUMENT and wireerror.ErrMisdirected. A unix socket is out of
// reach for pages.
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
		"host %q is not served here; use the address that is listened on, or give the name by --allowed-hosts",
		cut(r.Host),
	).
		With(semantics.DetailField, "Host")
	e.Err = wireerror.ErrMisdirected
	return e
}

// plain gives the form in which names are compared.
func plain(host string) string {
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

// cut shortens a text from outside for an error message.
func cut(s string) string {
	const most = 80
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}
