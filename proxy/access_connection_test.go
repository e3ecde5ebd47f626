package proxy_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	sidebus "github.com/sidebus/sidebus/proto/client"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy"
	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// authority signs certificates in a test.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	certificate, err := x509.ParseCertificate(der)
	must(t, err)
	return &authority{certificate, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

// sign returns a certificate and its key in PEM, for 127.0.0.1 and with a SPIFFE id.
func (a *authority) sign(t *testing.T, name string) (certificate, private []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, URIs: []*url.URL{{Scheme: "spiffe", Host: "test", Path: "/" + name}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.certificate, key.Public(), a.key)
	must(t, err)
	text, err := x509.MarshalECPrivateKey(key)
	must(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: text})
}

func (a *authority) client(t *testing.T, name string) *tls.Config {
	t.Helper()
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
	config.RootCAs.AddCert(a.certificate)
	if name != "" {
		pair, err := tls.X509KeyPair(a.sign(t, name))
		must(t, err)
		config.Certificates = []tls.Certificate{pair}
	}
	return config
}

// files writes the certificate of the sidecar and of the authority.
func (a *authority) files(t *testing.T, name string) proxy.TLS {
	t.Helper()
	folder := t.TempDir()
	config := proxy.TLS{
		CertFile: filepath.Join(folder, "cert.pem"), KeyFile: filepath.Join(folder, "key.pem"), ClientCAFile: filepath.Join(folder, "ca.pem"),
	}
	certificate, key := a.sign(t, name)
	for file, text := range map[string][]byte{config.CertFile: certificate, config.KeyFile: key, config.ClientCAFile: a.pem} {
		must(t, os.WriteFile(file, text, 0o600))
	}
	return config
}

// listening returns a policy with one identity, which may receive from the queue q and no more.
func listening(identity access.Identity) access.Authorizer {
	pattern, _ := access.ParsePattern("q")
	identity.Name = "worker"
	identity.Grants = []access.Grant{{Entities: []access.Pattern{pattern}, Claims: access.Listen}}
	policy := access.NewPolicy([]access.Identity{identity}, nil, nil)
	return access.Policies(func() *access.Policy { return policy })
}

const compatible = "REST of Service Bus"

// answersOn makes a receive and a send on each wire and returns their codes.
func answersOn(t *testing.T, client *http.Client, base string, conn *grpc.ClientConn, shared grpc.ClientConnInterface) map[string][2]codes.Code {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	got := map[string][2]codes.Code{}
	for name, over := range map[string]grpc.ClientConnInterface{"gRPC": conn, "calls over one stream": shared} {
		if over == nil {
			continue
		}
		messages := sidebusv1.NewMessagesClient(over)
		_, receiving := messages.Receive(ctx, &sidebusv1.ReceiveRequest{Source: "queues/q"})
		_, sending := messages.Send(ctx, &sidebusv1.SendRequest{Target: "queues/q", Messages: []*sidebusv1.Message{{}}})
		got[name] = [2]codes.Code{status.Code(receiving), status.Code(sending)}
	}
	over := func(method, path, body string) codes.Code {
		answer, err := client.Do(newRequest(t, method, base+path, body))
		must(t, err)
		must(t, answer.Body.Close())
		switch answer.StatusCode {
		case http.StatusUnauthorized:
			return codes.Unauthenticated
		case http.StatusForbidden:
			return codes.PermissionDenied
		default:
			return codes.NotFound
		}
	}
	got["HTTP"] = [2]codes.Code{
		over(http.MethodPost, "/v1/queues/q/messages:receive", `{"maxWait":"0s"}`), over(http.MethodPost, "/v1/queues/q/messages:send", `{"messages":[{}]}`),
	}
	got[compatible] = [2]codes.Code{
		over(http.MethodPost, "/q/messages/head?timeout=0", ""), over(http.MethodPost, "/q/messages", "a"),
	}
	return got
}

func wantOnAll(t *testing.T, what string, got map[string][2]codes.Code, want [2]codes.Code) {
	t.Helper()
	for wire, got := range got {
		want := want
		if wire == compatible && want[1] == codes.PermissionDenied {
			want[1] = codes.Unauthenticated // both are 401 there, as Service Bus has it (REST-1)
		}
		if got != want {
			t.Errorf("%s, %s: a receive and a send got %v, want %v", what, wire, got, want)
		}
	}
}

var (
	mayListen = [2]codes.Code{codes.NotFound, codes.PermissionDenied} // there is no queue
	unknown   = [2]codes.Code{codes.Unauthenticated, codes.Unauthenticated}
)

// The kernel says who is at the other end of a unix socket.
func TestAUTH_4_TheUserAtAUnixSocket(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		uid  int
		want [2]codes.Code
	}{"this user": {os.Getuid(), mayListen}, "another user": {os.Getuid() + 1, unknown}} {
		folder := t.TempDir()
		s := launch(t, memstore.New(), func(c *proxy.Config) {
			c.HTTPAddr, c.GRPCAddr = "unix://"+folder+"/h", "unix://"+folder+"/g"
		}, func(config *proxy.Config) { config.Authorizer = listening(access.Identity{UIDs: []int{c.uid}}) })
		wait(t, "start", s.proxy.Started())
		client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", folder+"/h")
		}}}
		defer client.CloseIdleConnections()
		conn, err := grpc.NewClient("unix://"+folder+"/g", grpc.WithTransportCredentials(insecure.NewCredentials()))
		must(t, err)
		defer conn.Close()
		calls, err := sidebus.New("unix://"+folder+"/g", nil)
		must(t, err)
		defer calls.Close()
		wantOnAll(t, what, answersOn(t, client, "http://localhost", conn, calls.Conn()), c.want)
	}
}

// Over TLS the certificate of a client says who it is. A client without one may prove it otherwise, which this policy does
// not offer.
func TestAUTH_4_TheCertificateOfAClient(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	s := launchTLS(t, ca.files(t, "sidecar"), listening(access.Identity{Certificates: []string{"spiffe://test/worker"}}))
	for name, want := range map[string][2]codes.Code{"worker": mayListen, "other": unknown, "": unknown} {
		client, conn := s.over(t, ca.client(t, name))
		wantOnAll(t, "client "+name, answersOn(t, client, "https://"+s.proxy.HTTPAddr().String(), conn, nil), want)
	}
	client, conn := s.over(t, newAuthority(t).client(t, "worker")) // knows another authority
	answered, err := client.Get("https://" + s.proxy.HTTPAddr().String() + "/openapi.json")
	if err == nil {
		_ = answered.Body.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("HTTP, another authority: got %v", err)
	}
	if _, err := sidebusv1.NewMessagesClient(conn).Receive(t.Context(), &sidebusv1.ReceiveRequest{}); status.Code(err) != codes.Unavailable {
		t.Errorf("gRPC, another authority: got %v", err)
	}
}

// launchTLS runs a sidecar whose listeners are over TLS.
func launchTLS(t *testing.T, config proxy.TLS, authorizer access.Authorizer) *sidecar {
	t.Helper()
	s := launch(t, memstore.New(), func(c *proxy.Config) { c.TLS, c.Authorizer = config, authorizer })
	wait(t, "start", s.proxy.Started())
	return s
}

// over returns clients of all wires over TLS.
func (s *sidecar) over(t *testing.T, config *tls.Config) (*http.Client, *grpc.ClientConn) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: config}
	t.Cleanup(transport.CloseIdleConnections)
	conn, err := grpc.NewClient("passthrough:///"+s.proxy.GRPCAddr().String(), grpc.WithTransportCredentials(credentials.NewTLS(config)))
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return &http.Client{Transport: transport}, conn
}

// The sidecar reads replaced certificates. Without a policy clients need one, and at the admin address always.
func TestAUTH_4_CertificatesAreReadAgain(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	config := ca.files(t, "sidecar")
	config.ClientsNeedOne = true
	s := launchTLS(t, config, nil)
	ask := func(address string, over *tls.Config) (name string, err error) {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: over, DisableKeepAlives: true}}
		answer, err := client.Do(newRequest(t, http.MethodGet, "https://"+address+"/readiness", ""))
		if err != nil {
			return "", err
		}
		return answer.TLS.PeerCertificates[0].Subject.CommonName, answer.Body.Close()
	}
	for _, address := range []string{s.proxy.HTTPAddr().String(), s.proxy.AdminAddr().String()} {
		if name, err := ask(address, ca.client(t, "any")); err != nil || name != "sidecar" {
			t.Errorf("with a certificate: got %q, %v", name, err)
		}
		if _, err := ask(address, ca.client(t, "")); err == nil || !strings.Contains(err.Error(), "certificate required") {
			t.Errorf("without a certificate: got %v", err)
		}
	}
	certificate, key := ca.sign(t, "renewed")
	must(t, os.WriteFile(config.KeyFile, key, 0o600))
	must(t, os.WriteFile(config.CertFile, certificate, 0o600))
	eventually(t, "the new certificate", func() bool {
		name, err := ask(s.proxy.HTTPAddr().String(), ca.client(t, "any"))
		must(t, err)
		return name == "renewed"
	})
}
