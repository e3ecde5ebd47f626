package compat_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// raw opens a connection and writes a request to it.
func (s *stand) raw(method, path string) net.Conn {
	s.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.base, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	if _, err := fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: x\r\n\r\n", method, path); err != nil {
		s.t.Fatal(err)
	}
	return conn
}

func TestRECV_7_ClientGoneBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	for _, method := range []string{http.MethodPost, http.MethodDelete} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			s.send(&semantics.Message{})
			arrived := make(chan struct{})
			s.store.beforeReceive = func(ctx context.Context) {
				close(arrived)
				<-ctx.Done() // the message is taken just when the client is gone
			}
			conn := s.raw(method, "/orders/messages/head")
			<-arrived
			if err := conn.Close(); err != nil {
				t.Fatal(err)
			}
			awaitCount(t, "released", s.store.released)
			s.store.beforeReceive = nil
			if again := s.want(http.StatusCreated, http.MethodPost, "/orders/messages/head", "").broker(t); again["DeliveryCount"] != 1.0 {
				t.Errorf("the delivery was counted: %v", again)
			}
		})
	}
}

// A client that does not read has its message taken back, uncounted, before the lock ends.
func TestRECV_7_ClientThatDoesNotRead(t *testing.T) {
	t.Parallel()
	s := start(t)
	lock := semantics.MinLockDuration
	s.create(semantics.QueueKind, "large", semantics.Options{LockDuration: lock, MaxMessageSizeInKilobytes: 100 << 10}, "lockDuration", "maxMessageSizeInKilobytes")
	body := bytes.Repeat([]byte("x"), 32<<20) // more than sockets hold
	if _, err := s.broker.Send(t.Context(), semantics.ToQueue("large"), []*semantics.Message{{Body: body}}); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	conn := s.raw(http.MethodPost, "/large/messages/head")
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "201") {
		t.Fatalf("got %q, %v", line, err)
	}
	awaitCount(t, "released", s.store.released)
	if took := time.Since(began); took >= lock {
		t.Errorf("it was given back after %s, when the lock had ended", took)
	}
	if m := s.stored("large")[0]; m.DeliveryCount != 0 || m.Locked {
		t.Errorf("got count %d, locked %t", m.DeliveryCount, m.Locked)
	}
}
