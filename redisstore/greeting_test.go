package redisstore_test

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
)

// wantUnchanged fails when an error leaves open whether something was changed, or is no outage with the cause.
func wantUnchanged(t *testing.T, what string, err error, cause string) {
	t.Helper()
	e := semantics.AsError(err)
	if err == nil || e.Code != semantics.StoreUnavailable || e.Details[semantics.DetailOutcome] != "" || e.Details[semantics.DetailCause] != cause {
		t.Errorf("%s: got %v %v, want STORE_UNAVAILABLE with cause %s and a known outcome", what, err, semantics.AsError(err).Details, cause)
	}
}

// tcpServer starts a Redis that also listens on TCP, whose clients see a connection reset where those of a unix socket
// see its end.
func tcpServer(t *testing.T, args ...string) (server *redistest.Server, addr string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr = listener.Addr().String()
	_ = listener.Close()
	_, port, _ := net.SplitHostPort(addr)
	server = redistest.Start(t, append(args, "--port", port, "--bind", "127.0.0.1")...)
	t.Cleanup(server.Stop)
	return server, addr
}

// A server that takes no connection in time has not seen the call, and the caller has not gone away.
func TestERR_6_ADialThatTakesTooLongIsNotUnknown(t *testing.T) {
	t.Parallel()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	must(t, err)
	t.Cleanup(func() { _ = syscall.Close(socket) })
	must(t, syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	must(t, syscall.Listen(socket, 0))
	name, err := syscall.Getsockname(socket)
	must(t, err)
	addr := fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)
	for { // until its queue of connections is full
		conn, err := net.DialTimeout("tcp", addr, 100*time.Millisecond)
		if err != nil {
			break
		}
		defer conn.Close()
	}
	s := redistest.Open(t, redisstore.Options{URL: "redis://" + addr, DialTimeout: 100 * time.Millisecond})
	_, err = s.Send(t.Context(), "orders", message(1))
	wantUnchanged(t, "send", err, "redis_unreachable")
}

// A Redis that refuses a connection or what it begins with has not seen the call.
func TestERR_6_RefusedByRedisIsNotUnknown(t *testing.T) {
	t.Parallel()
	server, addr := tcpServer(t)
	admin := open(t, server.URL)
	for _, kind := range []string{"tcp", "unix"} {
		for _, secret := range []string{"", ":s3cret@"} {
			t.Run(fmt.Sprintf("maxclients over %s, password %t", kind, secret != ""), func(t *testing.T) {
				url := "redis://" + secret + addr
				if kind == "unix" {
					url = strings.Replace(server.URL, "unix://", "unix://"+secret, 1)
				}
				set(t, admin, "maxclients", "1")
				defer set(t, admin, "maxclients", "1000")
				s := redistest.Open(t, redisstore.Options{URL: url})
				for range 20 { // Redis closes before or after it is greeted
					_, err := s.Send(t.Context(), "orders", message(1))
					wantUnchanged(t, "send", err, "redis_maxclients")
				}
			})
		}
	}
	t.Run("wrong password", func(t *testing.T) {
		s := redistest.Open(t, redisstore.Options{URL: "redis://nobody:wrong@" + addr})
		_, err := s.Send(t.Context(), "orders", message(1))
		wantUnchanged(t, "send", err, "redis_wrongpass")
	})
	t.Run("read-only", func(t *testing.T) {
		s := redistest.Open(t, redisstore.Options{URL: server.URL})
		create(t, s)
		if err := admin.ReplicaOf(t.Context(), "127.0.0.1", "1").Err(); err != nil {
			t.Fatal(err)
		}
		_, err := s.Send(t.Context(), "orders", message(1))
		wantUnchanged(t, "send to a replica", err, "redis_readonly")
		set(t, admin, "replica-serve-stale-data", "no")
		_, err = s.GetEntity(t.Context(), semantics.QueueKind, "orders")
		wantUnchanged(t, "read from a replica without its master", err, "redis_masterdown")
		if err := admin.ReplicaOf(t.Context(), "NO", "ONE").Err(); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("no password", func(t *testing.T) {
		set(t, admin, "requirepass", "s3cret")
		s := redistest.Open(t, redisstore.Options{URL: "redis://" + addr})
		_, err := s.Send(t.Context(), "orders", message(1))
		wantUnchanged(t, "send", err, "redis_noauth")
	})
}

// Whatever becomes of a connection before a call was sent on it, nothing was changed.
func TestERR_6_ALostGreetingIsNotUnknown(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"closed at once": "", "loading": "-LOADING Redis is loading the dataset in memory\r\n", "half an answer": "-ER",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			var serving sync.WaitGroup
			serving.Go(func() {
				for {
					conn, err := listener.Accept()
					if err != nil {
						return
					}
					_, _ = conn.Read(make([]byte, 1))
					_, _ = conn.Write([]byte(answer))
					_ = conn.Close()
				}
			})
			defer serving.Wait()
			defer listener.Close() //nolint:errcheck // nothing can be lost
			s := redistest.Open(t, redisstore.Options{URL: "redis://" + listener.Addr().String()})
			_, err = s.Send(t.Context(), "orders", message(1))
			wantUnchanged(t, "send", err, "redis_unreachable")
		})
	}
}

// open gives a client that keeps its one connection.
func open(t *testing.T, url string) *redis.Client {
	t.Helper()
	options := redistest.ClientOptions(t, url)
	options.PoolSize = 1
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	return client
}

func set(t *testing.T, client *redis.Client, name, value string) {
	t.Helper()
	if err := client.ConfigSet(t.Context(), name, value).Err(); err != nil {
		t.Fatal(err)
	}
}
