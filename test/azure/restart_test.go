package azure

import (
	"context"
	"errors"
	"net"
	"strconv"
	"syscall"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// freePort returns a port of loopback that nothing listens on.
func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

// TestClientsGoOnAfterARestart kills and stops the sidecar under a client, which goes on with the next one at the same
// address. No message is lost.
func TestClientsGoOnAfterARestart(t *testing.T) {
	t.Parallel()
	url, addr := redistest.URL(t), freePort(t)
	flags := []string{"--store", url, "--namespace", redistest.NamespaceUntil(t, url), "--amqp-addr", addr}
	s := sidecartest.Start(t, flags...)
	name := queue(t, s, `{"lockDuration":"2m"}`)
	l := open(t, s, name, nil)
	l.put(t, "0")
	held := l.one(t)

	s.Kill()
	s = sidecartest.Start(t, flags...)
	// the SDK settles over its link, which is gone, unless the message has nothing but its token
	must(t, l.receive.CompleteMessage(patient(t), &azservicebus.ReceivedMessage{LockToken: held.LockToken}, nil))
	l.put(t, "1")

	s.Signal(syscall.SIGTERM)
	if code := s.Exit(t); code != 143 && code != 0 {
		t.Errorf("exit code %d", code)
	}
	sidecartest.Start(t, flags...)
	l.put(t, "2", "3")
	for i, m := range get(t, l.receive, 3) {
		if string(m.Body) != strconv.Itoa(i+1) {
			t.Errorf("message %d is %s", i, m.Body)
		}
		must(t, l.receive.CompleteMessage(patient(t), m, nil))
	}
	if left, err := l.receive.PeekMessages(patient(t), 1, nil); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestManyMessages sends with several senders and receives with several receivers on connections of their own.
func TestManyMessages(t *testing.T) {
	t.Parallel()
	const senders, receivers, each = 4, 4, 250
	s := start(t)
	name := queue(t, s, `{}`)
	failed := make(chan error, senders+receivers)
	for range senders {
		l := open(t, s, name, nil)
		go func() {
			for range each {
				if err := l.send.SendMessage(t.Context(), &azservicebus.Message{Body: []byte("x")}, nil); err != nil {
					failed <- err
					return
				}
			}
			failed <- nil
		}()
	}
	numbers := make(chan int64, senders*each)
	for range receivers {
		l := open(t, s, name, nil)
		go func() {
			for len(numbers) < cap(numbers) {
				messages, err := l.receive.ReceiveMessages(briefly(t), 50, nil)
				if err != nil && !isOver(err) {
					failed <- err
					return
				}
				for _, m := range messages {
					if err := l.receive.CompleteMessage(t.Context(), m, nil); err != nil {
						failed <- err
						return
					}
					numbers <- *m.SequenceNumber
				}
			}
			failed <- nil
		}()
	}
	for range senders + receivers {
		must(t, <-failed)
	}
	seen := map[int64]bool{}
	for range cap(numbers) {
		n := <-numbers
		if seen[n] {
			t.Errorf("message %d was completed twice", n)
		}
		seen[n] = true
	}
}

// isOver reports whether a receive ended because its time did.
func isOver(err error) bool { return errors.Is(err, context.DeadlineExceeded) }
