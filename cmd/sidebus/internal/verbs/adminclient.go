package verbs

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/settings"
)

// adminClient speaks to the admin port of a sidecar.
type adminClient struct {
	base string
	http *http.Client
}

// answerLimit bounds what is read of an answer; the admin port's answers are short.
const answerLimit = 64 << 10

// Next steps if no sidecar answers at an address, or something else does.
const (
	startOne     = `start one with "sidebus serve", or set its admin address with --admin-addr or SIDEBUS_ADMIN_ADDR`
	notAdminAddr = "this is not the admin address of a sidecar, which is 127.0.0.1:7422 by default: set it with --admin-addr"
)

func newAdminClient(addr string, over tlsSettings) (*adminClient, error) {
	if err := settings.CheckAddress("admin-addr", addr); err != nil {
		return nil, cli.Misuse("%w", err)
	}
	config, err := over.config(addr)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{DisableKeepAlives: true, Proxy: nil, TLSClientConfig: config}
	client := &adminClient{base: "http://" + dialable(addr), http: &http.Client{Transport: transport}}
	if config != nil {
		client.base = "https://" + dialable(addr)
	}
	if path, isUnix := strings.CutPrefix(addr, "unix://"); isUnix {
		client.base = "http://sidebus"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}
	}
	return client, nil
}

// dialable turns an address to listen on into one to connect to: a wildcard host means this machine.
func dialable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	if ip := net.ParseIP(host); host == "" || (ip != nil && ip.IsUnspecified()) {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}

// call makes one request and returns status and body.
func (c *adminClient) call(ctx context.Context, method, path string) (status int, body string, err error) {
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, nil)
	if err != nil {
		return 0, "", err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close() //nolint:errcheck // only read from
	text, err := io.ReadAll(io.LimitReader(response.Body, answerLimit))
	if err != nil {
		return 0, "", fmt.Errorf("reading the answer of %s: %w", path, err)
	}
	return response.StatusCode, strings.TrimSpace(string(text)), nil
}
