package redisstore

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/sidebus/sidebus/semantics"
)

// Redis repeats the arguments of a command that it does not know, as AUTH and HELLO are that were renamed or stand
// behind a proxy.
func TestAUTH_3_NoErrorRepeatsThePassword(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	defer served.Wait()
	defer listener.Close() //nolint:errcheck // nothing can be lost
	served.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			served.Go(func() { repeatArguments(conn) })
		}
	})
	s, err := Open(Options{URL: "redis://someone:s3cret@" + listener.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // nothing can be lost
	_, err = s.Check(t.Context())
	if err == nil || strings.Contains(err.Error(), "s3cret") || strings.Contains(fmt.Sprintf("%+v", semantics.AsError(err)), "s3cret") {
		t.Errorf("got %v, want an error without the password", err)
	}
	if err != nil && !strings.Contains(err.Error(), "unknown command") {
		t.Errorf("got %v, want what Redis said", err)
	}
}

// repeatArguments answers every command as a Redis that does not know it.
func repeatArguments(conn net.Conn) {
	defer conn.Close() //nolint:errcheck // nothing can be lost
	for in := bufio.NewReader(conn); ; {
		var n int
		if _, err := fmt.Fscanf(in, "*%d\r\n", &n); err != nil {
			return
		}
		words := make([]string, n)
		for i := range words {
			var size int
			if _, err := fmt.Fscanf(in, "$%d\r\n", &size); err != nil {
				return
			}
			word := make([]byte, size+len("\r\n"))
			if _, err := io.ReadFull(in, word); err != nil {
				return
			}
			words[i] = string(word[:size])
		}
		if _, err := fmt.Fprintf(conn, "-ERR unknown command '%s', with args beginning with: '%s'\r\n", words[0], strings.Join(words[1:], "' '")); err != nil {
			return
		}
	}
}
