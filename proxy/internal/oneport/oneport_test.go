package oneport_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sidebus/sidebus/proxy/internal/authority"
	"github.com/sidebus/sidebus/proxy/internal/oneport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = time.Minute

// start serves a port whose servers answer with their name and what they have read.
func start(t *testing.T, config oneport.Config) (addr string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := oneport.New(config)
	port.Add(listener)
	var work sync.WaitGroup
	for name, of := range map[string]net.Listener{"amqp": port.AMQP(), "http": port.HTTP()} {
		work.Go(func() {
			for {
				conn, err := of.Accept()
				if err != nil {
					return
				}
				work.Go(func() {
					defer conn.Close() //nolint:errcheck // it is over
					read := make([]byte, 4)
					if _, err := io.ReadFull(conn, read); err == nil {
						_, _ = conn.Write([]byte(name + " " + string(read)))
						half, ok := conn.(interface{ CloseWrite() error })
						if !ok || half.CloseWrite() != nil {
							t.Errorf("a connection of %s cannot be closed for writing alone, so its last bytes may be lost", name)
						}
					}
				})
			}
		})
	}
	served := make(chan error, 1)
	work.Go(func() { served <- port.Serve(context.WithoutCancel(t.Context())) })
	t.Cleanup(func() {
		port.Close()
		if err := <-served; !errors.Is(err, oneport.ErrClosed) {
			t.Errorf("served until %v", err)
		}
		work.Wait()
	})
	return listener.Addr().String()
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	return conn
}

// answer writes to a connection, and returns what comes back until its end.
func answer(t *testing.T, conn net.Conn, text string) string {
	t.Helper()
	if _, err := conn.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	back, err := io.ReadAll(conn)
	var late net.Error
	if errors.As(err, &late) && late.Timeout() {
		t.Fatalf("%q was not answered", text)
	}
	return string(back) // a reset is an end too
}

// secure returns a configuration of TLS, and one of clients that trust it.
func secure(t *testing.T) (func(*tls.ClientHelloInfo) (*tls.Config, error), *tls.Config) {
	t.Helper()
	own, err := authority.Open(t.TempDir(), []string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := own.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	return func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return &tls.Config{Certificates: []tls.Certificate{*certificate}, MinVersion: tls.VersionTLS12}, nil
	}, &tls.Config{InsecureSkipVerify: true} //nolint:gosec // the test of the authority verifies
}

func TestTheFirstBytesDecide(t *testing.T) {
	t.Parallel()
	server, client := secure(t)
	addr := start(t, oneport.Config{TLS: server})
	for sent, want := range map[string]string{
		"AMQP\x03": "amqp AMQP", "GET /": "http GET ", "POST ": "http POST", "\x00\x01\x02\x03": "", "get /": "", "\x16\x03": "",
	} {
		conn := dial(t, addr)
		if sent == "\x16\x03" {
			_ = conn.(*net.TCPConn).CloseWrite()
			continue
		}
		if got := answer(t, conn, sent); got != want {
			t.Errorf("%q: got %q, want %q", sent, got, want)
		}
		if want == "" {
			continue
		}
		if got := answer(t, tls.Client(dial(t, addr), client), sent); got != want {
			t.Errorf("%q over TLS: got %q, want %q", sent, got, want)
		}
	}
	if got := answer(t, tls.Client(dial(t, addr), client), "\x16\x03\x01\x00"); got != "" {
		t.Errorf("TLS within TLS: %q", got)
	}
}

func TestWithoutTLS(t *testing.T) {
	t.Parallel()
	if got := answer(t, dial(t, start(t, oneport.Config{})), "\x16\x03\x01\x00"); got != "amqp \x16\x03\x01\x00" {
		t.Errorf("the server of AMQP, which logs what to do, got %q", got)
	}
	server, client := secure(t)
	addr := start(t, oneport.Config{TLS: server, NeedsTLS: true})
	if got := answer(t, dial(t, addr), "AMQP\x03"); got != "" {
		t.Errorf("AMQP without TLS is answered with %q", got)
	}
	if got := answer(t, tls.Client(dial(t, addr), client), "AMQP\x03"); got != "amqp AMQP" {
		t.Errorf("AMQP over TLS: %q", got)
	}
}

// Ten thousand clients that say nothing, or only begin with TLS, take no more goroutines than the limit, and do not keep
// another client from its answer.
func TestSilentConnectionsMakeWay(t *testing.T) {
	t.Parallel()
	server, _ := secure(t)
	addr := start(t, oneport.Config{TLS: server})
	before, most := runtime.NumGoroutine(), 0
	var silent []net.Conn
	for i := range 10_000 {
		conn := dial(t, addr)
		if i%2 == 0 {
			_, _ = conn.Write([]byte("\x16\x03\x01")) // it may be closed already
		}
		if silent = append(silent, conn); len(silent) > 100 { // so that the test has open files left
			_ = silent[0].Close()
			silent = silent[1:]
		}
		most = max(most, runtime.NumGoroutine()-before)
	}
	if limit := oneport.MaxOpening + 100; most > limit {
		t.Errorf("%d goroutines, want at most %d", most, limit)
	}
	if got := answer(t, dial(t, addr), "AMQP\x03"); got != "amqp AMQP" {
		t.Errorf("then AMQP is answered with %q", got)
	}
}

// The oldest of too many connections is closed long before its time has passed.
func TestTheOldestSilentConnectionIsClosed(t *testing.T) {
	t.Parallel()
	addr := start(t, oneport.Config{})
	oldest := dial(t, addr)
	for range oneport.MaxOpening {
		dial(t, addr)
	}
	if _, err := oldest.Read(make([]byte, 1)); err == nil {
		t.Error("it is answered")
	} else if late := net.Error(nil); errors.As(err, &late) && late.Timeout() {
		t.Error("it stays open")
	}
}

func TestASilentConnectionEnds(t *testing.T) {
	t.Parallel()
	began := time.Now()
	conn := dial(t, start(t, oneport.Config{}))
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(began); took < oneport.OpeningTime/2 || took > patience/2 {
		t.Errorf("after %s", took)
	}
}
