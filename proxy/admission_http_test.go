package proxy_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/proxy"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// hurried bounds the time of a body so far that a test can wait for it.
func hurried(c *proxy.Config) { c.RequestTime = 300 * time.Millisecond }

// A body that does not arrive ends its request and its connection, however slowly it drips and whether it is read or
// not.
func TestQUOTA_5_ABodyHasToArrive(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New(), hurried)
	for name, request := range map[string]struct {
		path, head string
		status     int
	}{
		"announced":     {verbPath + "send", "Content-Length: 60000", http.StatusRequestTimeout},
		"of any length": {verbPath + "send", "Transfer-Encoding: chunked", http.StatusRequestTimeout},
		"compat":        {"/orders/messages", "Content-Length: 60000", http.StatusRequestTimeout},
		"unread":        {"/v1/nothing", "Content-Length: 60000", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := rawDial(t, s.proxy.HTTPAddr())
			if _, err := fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n\r\n", request.path, request.head); err != nil {
				t.Fatal(err)
			}
			drip := "x"
			if strings.HasPrefix(request.head, "Transfer") {
				drip = "1\r\nx\r\n"
			}
			go func() {
				slow := time.NewTicker(10 * time.Millisecond)
				defer slow.Stop()
				for range slow.C {
					if _, err := c.Write([]byte(drip)); err != nil {
						return
					}
				}
			}()
			a, ok := c.answer(t)
			if request.status != 0 && (!ok || a.status != request.status || a.header.Get("Connection") != "close") {
				t.Errorf("got %t %d %v %s", ok, a.status, a.header, a.body)
			}
			if _, again := c.answer(t); again {
				t.Error("the connection goes on")
			}
		})
	}
}

// A body whose chunks are malformed is the client's mistake, which the same request again would not mend.
func TestERR_1_MalformedChunksAreRefused(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	for _, path := range []string{verbPath + "send", "/orders/messages"} {
		c := rawDial(t, s.proxy.HTTPAddr())
		if _, err := fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nno length\r\n", path); err != nil {
			t.Fatal(err)
		}
		if a, ok := c.answer(t); !ok || a.status != http.StatusBadRequest || !strings.Contains(a.body, "INVALID_ARGUMENT") {
			t.Errorf("%s: got %t %d %s", path, ok, a.status, a.body)
		}
	}
}

// A receive may wait longer than its body had time.
func TestRECV_5_AWaitIsNotHurried(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New(), hurried)
	a := s.call(t, http.MethodPost, verbPath+"receive", `{"maxWait":"1s"}`)
	if a.status != http.StatusOK || strings.TrimSpace(a.body) != `{"messages":[]}` {
		t.Errorf("got %d %s", a.status, a.body)
	}
}

// A page that gave its own name the address of the sidecar is of the same origin for the browser, and refused for its
// name.
func TestAUTH_3_OtherHostsAreMisdirected(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New(), func(c *proxy.Config) { c.AllowedHosts = []string{"Sidebus.internal", "bus"} })
	s.send(t, "one")
	ask := func(method, url, host string, status int) {
		t.Helper()
		request := newRequest(t, method, url, "")
		request.Host = host
		request.Header.Set("Origin", "http://"+host)
		if a := s.exchange(t, request); a.status != status {
			t.Errorf("%s %s for %s: got %d, want %d", method, url, host, a.status, status)
		}
	}
	api, admin := "http://"+s.proxy.HTTPAddr().String(), "http://"+s.proxy.AdminAddr().String()
	for _, host := range []string{"evil.example:7420", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "10.1.2.3:7420", "[2001:db8::1]:7420", "bus.evil.example"} {
		ask(http.MethodGet, api+"/v1/queues", host, http.StatusMisdirectedRequest)
		ask(http.MethodDelete, api+"/orders/messages/head?timeout=0", host, http.StatusMisdirectedRequest)
		ask(http.MethodPost, admin+"/drain", host, http.StatusMisdirectedRequest)
		ask(http.MethodGet, admin+"/config", host, http.StatusMisdirectedRequest)
	}
	if s.broker.Draining() || s.runtime(t).GetTotalMessageCount() != 1 {
		t.Error("the page had its way")
	}
	for _, host := range []string{"localhost:7420", "LOCALHOST", "127.0.0.1", "127.0.0.5:1", "[::1]:7420", "[::1]", "localhost.", "sidebus.internal:7420", "BUS"} {
		ask(http.MethodGet, api+"/v1/queues", host, http.StatusOK)
		ask(http.MethodGet, admin+"/readiness", host, http.StatusOK)
	}
}

// A probe by a pod's address is served when that is listened on, by whatever address the pod has.
func TestAUTH_3_TheAddressOfTheConnectionIsServed(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New(), func(c *proxy.Config) { c.AdminAddr = "0.0.0.0:0" })
	_, port, _ := strings.Cut(s.proxy.AdminAddr().String(), "]:")
	for _, ip := range ownAddresses(t) {
		if a := s.request(t, http.MethodGet, "http://"+ip+":"+port+"/readiness", ""); a.status != http.StatusOK {
			t.Errorf("%s: got %d %s", ip, a.status, a.body)
		}
	}
}

// A request that net/http itself rejects is answered as all others are, and its connection is closed.
func TestERR_1_WhatCannotBeReadHasAReason(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	for name, request := range map[string]struct {
		head   string
		status int
	}{
		"an escape in a path":  {"GET /v1/queues/%zz HTTP/1.1\r\nHost: localhost\r\n\r\n", http.StatusBadRequest},
		"half an escape":       {"PUT /orders/messages/% HTTP/1.1\r\nHost: localhost\r\n\r\n", http.StatusBadRequest},
		"no host":              {"GET /v1/queues HTTP/1.1\r\n\r\n", http.StatusBadRequest},
		"a header":             {"GET /v1/queues HTTP/1.1\r\nHost: localhost\r\nA B: c\r\n\r\n", http.StatusBadRequest},
		"a length":             {"POST /v1/queues HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n", http.StatusBadRequest},
		"a header of any size": {"GET /v1/queues HTTP/1.1\r\nHost: localhost\r\nA: " + strings.Repeat("a", mebibyte) + "\r\n\r\n", http.StatusRequestHeaderFieldsTooLarge},
		"a transfer encoding":  {"POST /v1/queues HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n", http.StatusNotImplemented},
	} {
		c := rawDial(t, s.proxy.HTTPAddr())
		go func() { _, _ = c.Write([]byte(request.head)) }() // it may be refused before it is whole
		a, ok := c.answer(t)
		reason := ""
		if ok {
			reason, _ = a.reason(t)
		}
		if a.status != request.status || reason != "INVALID_ARGUMENT" || a.header.Get("Content-Type") != "application/json" || a.header.Get("Connection") != "close" {
			t.Errorf("%s: got %d %v %s", name, a.status, a.header, a.body)
		}
		if _, again := c.answer(t); again {
			t.Errorf("%s: the connection goes on", name)
		}
	}
}

// A client that writes a whole large body before it reads anything sees why it was refused.
func TestERR_1_ARefusalOfALargeBodyIsSeen(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New(), requestMemory(8*mebibyte))
	busy := rawDial(t, s.proxy.HTTPAddr()) // takes all memory
	busy.ask(t, http.MethodPost, verbPath+"send", 7*mebibyte, "{")
	eventually(t, "its memory is taken", func() bool {
		return strings.Contains(s.ask(t, http.MethodGet, "/metrics").body, "sidebus_request_memory_bytes 2.9360128e+07\n")
	})
	for name, request := range map[string]struct {
		path         string
		size, status int
	}{
		"too large": {verbPath + "send", 30 * mebibyte, http.StatusRequestEntityTooLarge},
		"no memory": {verbPath + "send", 7 * mebibyte, http.StatusTooManyRequests},
		"compat":    {"/orders/messages", 30 * mebibyte, http.StatusForbidden},
	} {
		body := strings.Repeat("x", request.size)
		c := rawDial(t, s.proxy.HTTPAddr())
		c.ask(t, http.MethodPost, request.path, len(body), body)
		if a, ok := c.answer(t); !ok || a.status != request.status {
			t.Errorf("%s: got %t %d %s", name, ok, a.status, a.body)
		}
		if a := s.request(t, http.MethodPost, "http://"+s.proxy.HTTPAddr().String()+request.path, body); a.status != request.status {
			t.Errorf("%s, with Go's client: got %d %s", name, a.status, a.body)
		}
	}
}
