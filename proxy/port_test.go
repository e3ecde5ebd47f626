package proxy_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/sidebus/sidebus/proxy"
	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/semantics/memstore"
)

const socketPath = "/$servicebus/websocket"

// header begins AMQP without SASL. The answer of a server that serves it is the same.
const header = "AMQP\x00\x01\x00\x00"

// speaksAMQP reports whether a connection is answered as AMQP. It closes the connection.
func speaksAMQP(t *testing.T, conn net.Conn) bool {
	t.Helper()
	defer conn.Close() //nolint:errcheck // it is over
	_ = conn.SetDeadline(time.Now().Add(patience))
	_, _ = conn.Write([]byte(header)) // it may be closed
	answer := make([]byte, len(header))
	_, err := io.ReadFull(conn, answer)
	return err == nil && string(answer) == header
}

// port is an address of AMQP, as a client with a configuration of TLS sees it.
type port struct {
	addr   string
	config *tls.Config
}

// answers returns what the address serves: AMQP, HTTP and AMQP over WebSockets, each without and with TLS.
func (p port) answers(t *testing.T) (got [6]bool) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: p.config, DisableKeepAlives: true}
	client := &http.Client{Transport: transport}
	for i, scheme := range []string{"http", "https"} {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", p.addr)
		must(t, err)
		if scheme == "https" {
			conn = tls.Client(conn, named(p.config, "127.0.0.1"))
		}
		got[3*i] = speaksAMQP(t, conn)
		answer, err := client.Do(newRequest(t, http.MethodGet, scheme+"://"+p.addr+"/openapi.json", ""))
		if err == nil {
			got[3*i+1] = answer.StatusCode == http.StatusOK
			_ = answer.Body.Close()
		}
		options := websocket.DialOptions{HTTPClient: client, Subprotocols: []string{"AMQPWSB10"}}
		//nolint:bodyclose // Dial says that it need not be closed
		socket, answer, err := websocket.Dial(t.Context(), scheme+"://"+p.addr+socketPath+"/", &options)
		if err == nil {
			if answer.Header.Get("Sec-WebSocket-Protocol") != "AMQPWSB10" {
				t.Errorf("the subprotocol is %q", answer.Header.Get("Sec-WebSocket-Protocol"))
			}
			got[3*i+2] = speaksAMQP(t, websocket.NetConn(t.Context(), socket, websocket.MessageBinary))
		}
	}
	return got
}

// named returns a configuration for a server of a name.
func named(config *tls.Config, name string) *tls.Config {
	config = config.Clone()
	config.ServerName = name
	return config
}

// launchPort runs a sidecar with two addresses of AMQP.
func launchPort(t *testing.T, change func(*proxy.Config)) *sidecar {
	t.Helper()
	s := launch(t, memstore.New(), func(c *proxy.Config) { c.AMQPAddrs = []string{"127.0.0.1:0", "127.0.0.1:0"} }, change)
	wait(t, "start", s.proxy.Started())
	return s
}

var (
	everything = [6]bool{true, true, true, true, true, true}
	onlyTLS    = [6]bool{false, false, false, true, true, true}
	withoutTLS = [6]bool{true, true, true, false, false, false}
)

// Each address of AMQP serves everything. Without certificates, the sidecar has an authority of its own.
func TestOneAddressForEverything(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "amqp")
	s := launchPort(t, func(c *proxy.Config) { c.AuthorityDir = dir })
	text, err := os.ReadFile(s.proxy.AuthorityFile())
	must(t, err)
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(text)
	for _, addr := range s.proxy.AMQPAddrs() {
		if got := (port{addr.String(), config}).answers(t); got != everything {
			t.Errorf("%s answers %v", addr, got)
		}
	}
}

// Without a directory that can be written, the addresses are served without TLS.
func TestAnAuthorityThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	s := launchPort(t, func(c *proxy.Config) { c.AuthorityDir = file })
	if got := (port{s.proxy.AMQPAddrs()[0].String(), &tls.Config{MinVersion: tls.VersionTLS12}}).answers(t); got != withoutTLS {
		t.Errorf("got %v", got)
	}
	if !strings.Contains(s.log.String(), "no certificate authority") {
		t.Error("no warning was logged")
	}
}

// A certificate for AMQP alone adds TLS; one for all addresses takes away what is not over TLS.
func TestCertificatesOfAMQP(t *testing.T) {
	t.Parallel()
	ca, other := newAuthority(t), newAuthority(t)
	all, own := ca.files(t, "sidecar"), other.files(t, "amqp")
	all.ClientCAFile = ""
	for _, c := range []struct {
		what    string
		change  func(*proxy.Config)
		trusted *authority
		want    [6]bool
	}{
		{"of its own", func(c *proxy.Config) { c.AMQPCertFile, c.AMQPKeyFile = own.CertFile, own.KeyFile }, other, everything},
		{"for all", func(c *proxy.Config) { c.TLS = all }, ca, onlyTLS},
		{"both", func(c *proxy.Config) { c.TLS, c.AMQPCertFile, c.AMQPKeyFile = all, own.CertFile, own.KeyFile }, other, onlyTLS},
	} {
		s := launchPort(t, func(config *proxy.Config) {
			config.AuthorityDir = t.TempDir() // not used
			c.change(config)
		})
		if got := (port{s.proxy.AMQPAddrs()[0].String(), c.trusted.client(t, "")}).answers(t); got != c.want {
			t.Errorf("%s: got %v, want %v", c.what, got, c.want)
		}
	}
}

// The certificate of a client counts behind the first bytes, and over WebSockets.
func TestAUTH_4_TheCertificateOfAClientOfAMQP(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	files := ca.files(t, "sidecar")
	files.ClientsNeedOne = true
	s := launchPort(t, func(c *proxy.Config) { c.TLS = files })
	addr := s.proxy.AMQPAddrs()[1].String()
	if got := (port{addr, ca.client(t, "any")}).answers(t); got != onlyTLS {
		t.Errorf("with a certificate: %v", got)
	}
	if got := (port{addr, ca.client(t, "")}).answers(t); got != [6]bool{} {
		t.Errorf("without a certificate: %v", got)
	}
	proofs := make(chan access.Proof, 100)
	s = launchPort(t, func(c *proxy.Config) {
		c.TLS, c.Authorizer = ca.files(t, "sidecar"), noting{access.AllowAll{}, proofs}
	})
	(port{s.proxy.AMQPAddrs()[0].String(), ca.client(t, "worker")}).answers(t)
	for range 2 { // AMQP, and AMQP over WebSockets
		if proof := <-proofs; proof.Peer.Certificate == nil || proof.Peer.Certificate.Subject.CommonName != "worker" {
			t.Errorf("the peer is %v", proof.Peer)
		}
	}
}

// noting is an Authorizer that notes what callers prove.
type noting struct {
	access.Authorizer
	proofs chan access.Proof
}

// Authenticate notes the proof.
func (n noting) Authenticate(proof access.Proof) (access.Caller, error) {
	n.proofs <- proof
	return n.Authorizer.Authenticate(proof)
}

// A web page of another origin gets no connection over WebSockets.
func TestWebPagesGetNoWebSocket(t *testing.T) {
	t.Parallel()
	s := launchPort(t, func(*proxy.Config) {})
	addr := s.proxy.AMQPAddrs()[0].String()
	for origin, want := range map[string]bool{"http://" + addr: true, "https://example.com": false} {
		options := websocket.DialOptions{HTTPHeader: http.Header{"Origin": {origin}}}
		//nolint:bodyclose // Dial says that it need not be closed
		socket, _, err := websocket.Dial(t.Context(), "ws://"+addr+socketPath, &options)
		if (err == nil) != want {
			t.Errorf("%s: %v", origin, err)
		}
		if err == nil {
			_ = socket.CloseNow()
		}
	}
	request := newRequest(t, http.MethodGet, "http://"+addr+socketPath, "")
	request.Host = "example.com" // a name that was made to lead here
	answer, err := s.http.Do(request)
	must(t, err)
	must(t, answer.Body.Close())
	if answer.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("another host: %d", answer.StatusCode)
	}
}
