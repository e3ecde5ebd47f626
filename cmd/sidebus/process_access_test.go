package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/test/sidecartest"
)

const (
	accessToken = "pl4nted-token-0123456789"
	wrongToken  = "pl4nted-token-of-no-identity"
)

// accessPolicy is a policy with one identity, which has claims on the queue "orders".
func accessPolicy(claims string) string {
	return "identities:\n- name: orders-app\n  tokenFiles: [token]\n  grants:\n  - {entities: [orders], claims: [" + claims + "]}\n"
}

// replace replaces a file as Kubernetes does it in a volume: what is read is the old or the new one.
func replace(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// ask makes a call of the HTTP API with a token and returns its status and body.
func ask(t *testing.T, client *http.Client, method, url, token, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// auditLines returns the lines of the audit.
func auditLines(s *sidecartest.Sidecar) (lines []map[string]any) {
	for text := range strings.Lines(s.Log()) {
		line := map[string]any{}
		if json.Unmarshal([]byte(text), &line) == nil && line["msg"] == "audit" {
			lines = append(lines, line)
		}
	}
	return lines
}

// A running sidecar takes a changed policy and keeps the old one if the new one is broken. It ends a stream that is no
// longer permitted. Its audit has no secret.
func TestAUTH_4_ThePolicyOfTheBinary(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	policy, token := filepath.Join(folder, "policy.yaml"), filepath.Join(folder, "token")
	replace(t, policy, accessPolicy("Send, Listen, Manage"))
	replace(t, token, accessToken+"\n")
	s := sidecartest.Start(t, "--store", "memory", "--policy-file", policy, "--log-level", "debug")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	call := func(token, method, path, body string) int {
		t.Helper()
		status, text := ask(t, client, method, "http://"+s.HTTP+path, token, body)
		if strings.Contains(text, "pl4nted") {
			t.Errorf("the answer has the token: %s", text)
		}
		return status
	}
	const send = `{"messages":[{"text":"a"}]}`
	for what, c := range map[string]struct {
		token, method, path, body string
		want                      int
	}{
		"create":               {accessToken, http.MethodPut, "/v1/queues/orders", `{}`, 200},
		"create elsewhere":     {accessToken, http.MethodPut, "/v1/queues/other", `{}`, 403},
		"without a token":      {"", http.MethodPut, "/v1/queues/orders", `{}`, 401},
		"with a wrong token":   {wrongToken, http.MethodPut, "/v1/queues/orders", `{}`, 401},
		"a token in the URL":   {"", http.MethodGet, "/v1/queues/orders?access_token=" + accessToken, ``, 401},
		"the REST API":         {"", http.MethodPost, "/orders/messages?token=" + accessToken, `a`, 401},
		"REST, another entity": {accessToken, http.MethodPost, "/other/messages", `a`, 401},
	} {
		if got := call(c.token, c.method, c.path, c.body); got != c.want {
			t.Errorf("%s: got %d, want %d", what, got, c.want)
		}
	}
	if code, out := sidecartest.Run(t, "entity", "show", "orders", "--grpc-addr", s.GRPC, "--token-file", token); code != 0 {
		t.Errorf("the command line with the token: %d %s", code, out)
	}
	if code, out := sidecartest.Run(t, "entity", "show", "orders", "--grpc-addr", s.GRPC); code == 0 || !strings.Contains(out, "UNAUTHENTICATED") {
		t.Errorf("the command line without a token: %d %s", code, out)
	}

	replace(t, policy, accessPolicy("Send, Everything"))
	sidecartest.Eventually(t, "the broken policy is noticed", func() bool {
		if got := call(accessToken, http.MethodGet, "/v1/queues/orders", ""); got != 200 {
			t.Fatalf("the policy of before has no effect: got %d", got)
		}
		return strings.Contains(s.Log(), "cannot be read again") && strings.Contains(s.Log(), `is \"Everything\"`)
	})

	conn := must[*grpc.ClientConn](t)(grpc.NewClient(s.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials())))
	defer conn.Close()
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+accessToken)
	stream := must[sidebusv1.Messages_SubscribeClient](t)(sidebusv1.NewMessagesClient(conn).Subscribe(ctx))
	open := &sidebusv1.SubscribeRequest{Request: &sidebusv1.SubscribeRequest_Open{Open: &sidebusv1.SubscribeOpen{Source: "queues/orders"}}}
	if err := stream.Send(open); err != nil {
		t.Fatal(err)
	}
	must[*sidebusv1.SubscribeResponse](t)(stream.Recv())
	replace(t, policy, accessPolicy("Send"))
	sidecartest.Eventually(t, "the new policy has an effect", func() bool {
		return call(accessToken, http.MethodGet, "/v1/queues/orders", "") == 403
	})
	if got := call(accessToken, http.MethodPost, "/v1/queues/orders/messages:send", send); got != 200 {
		t.Errorf("a send under the new policy: got %d", got)
	}
	var err error
	for err == nil {
		_, err = stream.Recv() // what was sent may have come before
	}
	if status.Code(err) != codes.PermissionDenied {
		t.Errorf("the stream ended with %v", err)
	}
	replace(t, token, "another-token-of-the-same-identity")
	sidecartest.Eventually(t, "the old token is void", func() bool {
		return call(accessToken, http.MethodPost, "/v1/queues/orders/messages:send", send) == 401
	})

	want := map[string]bool{"Admin.EnsureQueue OK orders-app": false, "Admin.EnsureQueue PERMISSION_DENIED orders-app": false, "Admin.GetQueue PERMISSION_DENIED orders-app": false, "Messages.Send UNAUTHENTICATED ": false}
	for _, line := range auditLines(s) {
		caller, _ := line["caller"].(string)
		method, _ := line["method"].(string)
		code, _ := line["code"].(string)
		if method == "none" {
			method = "Messages.Send" // refused before its route was found
		}
		want[method+" "+code+" "+caller] = true
		if _, has := line["peer"]; !has {
			t.Errorf("a line has no peer: %v", line)
		}
	}
	for line, seen := range want {
		if !seen {
			t.Errorf("the audit has no line %q", line)
		}
	}
	for what, text := range map[string]string{"log": s.Log(), "/config": s.Probe(t.Context(), http.MethodGet, "/config").Text, "/metrics": s.Probe(t.Context(), http.MethodGet, "/metrics").Text} {
		if strings.Contains(text, "pl4nted") {
			t.Errorf("%s has a token", what)
		}
	}
}

// Addresses that other machines reach need a proof, or the flag that permits them without.
func TestAUTH_4_ExposedAddressesAreRefused(t *testing.T) {
	t.Parallel()
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	replace(t, policy, "identities:\n- {name: a, uids: [1], grants: [{entities: [q], claims: [Send]}]}\n")
	for _, flag := range []string{"--http-addr", "--grpc-addr", "--admin-addr"} {
		for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0"} {
			code, out := sidecartest.Run(t, "serve", "--store", "memory", flag, address)
			if code != 1 || !strings.Contains(out, flag) || !strings.Contains(out, "--allow-anonymous") {
				t.Errorf("%s %s: got %d %s", flag, address, code, out)
			}
		}
	}
	if code, out := sidecartest.Run(t, "serve", "--store", "memory", "--admin-addr", "0.0.0.0:0", "--policy-file", policy); code != 1 {
		t.Errorf("a policy does not protect the admin address: got %d %s", code, out)
	}
	for _, flags := range [][]string{{"--http-addr", "0.0.0.0:0", "--policy-file", policy}, {"--grpc-addr", "0.0.0.0:0", "--allow-anonymous"}} {
		s := sidecartest.Launch(t, append([]string{"--store", "memory"}, flags...)...)
		if s.HTTP == "" {
			t.Errorf("%v: it has not started:\n%s", flags, s.Log())
		}
		if isWarned := strings.Contains(s.Log(), "other machines can reach this address"); isWarned != (flags[2] == "--allow-anonymous") {
			t.Errorf("%v: warned is %t:\n%s", flags, isWarned, s.Log())
		}
	}
}

// signer signs certificates.
type signer struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func must[T any](t *testing.T) func(value T, err error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// sign returns a certificate for 127.0.0.1 and its key in PEM. Without a signer it signs itself.
func (s signer) sign(t *testing.T, name string) (one signer, certificate, private string) {
	t.Helper()
	key := must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, BasicConstraintsValid: true, IsCA: s.key == nil,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if s.key == nil {
		s = signer{template, key}
		template.ExtKeyUsage, template.KeyUsage = nil, x509.KeyUsageCertSign
	}
	der := must[[]byte](t)(x509.CreateCertificate(rand.Reader, template, s.certificate, key.Public(), s.key))
	text := must[[]byte](t)(x509.MarshalECPrivateKey(key))
	return signer{must[*x509.Certificate](t)(x509.ParseCertificate(der)), key},
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: text}))
}

// The binary serves over TLS, knows a client by its certificate, and takes a new certificate of its own while it runs.
// The commands connect in the same way.
func TestAUTH_4_TheCertificatesOfTheBinary(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := func(name string) string { return filepath.Join(folder, name) }
	ca, caText, _ := signer{}.sign(t, "authority")
	replace(t, file("ca.pem"), caText)
	pair := func(file, name string) {
		_, certificate, key := ca.sign(t, name)
		replace(t, file+".key", key)
		replace(t, file+".pem", certificate)
	}
	pair(file("sidecar"), "first")
	pair(file("worker"), "worker")
	pair(file("other"), "other")
	replace(t, file("policy.yaml"), "identities:\n- {name: worker, certificates: [CN=worker], grants: [{entities: ['*'], claims: [Send, Listen, Manage]}]}\n")
	s := sidecartest.Launch(t, "--store", "memory", "--policy-file", file("policy.yaml"), "--tls-client-ca-file", file("ca.pem"),
		"--tls-cert-file", file("sidecar.pem"), "--tls-key-file", file("sidecar.key"))
	as := func(name string, args ...string) (int, string) {
		args = append(args, "--tls-ca-file", file("ca.pem"))
		if name != "" {
			args = append(args, "--client-cert-file", file(name+".pem"), "--client-key-file", file(name+".key"))
		}
		return sidecartest.Run(t, args...)
	}
	if code, out := as("other", "wait", "--admin-addr", s.Admin); code != 0 {
		t.Fatalf("wait: %d %s", code, out)
	}
	if code, _ := as("", "wait", "--admin-addr", s.Admin, "--timeout", "1s"); code == 0 {
		t.Error("the admin address is open without a certificate")
	}
	if code, out := as("worker", "entity", "create", "orders", "--grpc-addr", s.GRPC); code != 0 {
		t.Errorf("the worker: %d %s", code, out)
	}
	for _, name := range []string{"other", ""} {
		if code, out := as(name, "entity", "show", "orders", "--grpc-addr", s.GRPC); code == 0 || !strings.Contains(out, "UNAUTHENTICATED") {
			t.Errorf("%q: %d %s", name, code, out)
		}
	}
	if code, out := sidecartest.Run(t, "entity", "show", "orders", "--grpc-addr", s.GRPC, "--timeout", "2s"); code == 0 {
		t.Errorf("without TLS: %s", out)
	}

	pool := x509.NewCertPool()
	pool.AddCert(ca.certificate)
	worker := must[tls.Certificate](t)(tls.LoadX509KeyPair(file("worker.pem"), file("worker.key")))
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, Certificates: []tls.Certificate{worker}},
	}}
	server := func() string {
		request := must[*http.Request](t)(http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+s.HTTP+"/v1/queues/orders", nil))
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Fatalf("the worker: got %s", response.Status)
		}
		return response.TLS.PeerCertificates[0].Subject.CommonName
	}
	if got := server(); got != "first" {
		t.Errorf("the certificate is that of %q", got)
	}
	pair(file("sidecar"), "second")
	sidecartest.Eventually(t, "the new certificate", func() bool { return server() == "second" })
}
