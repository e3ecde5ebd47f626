// Command push is an app that gets its messages as HTTP requests: no client, no loop, no locks. It listens on the
// address it is given, or on a unix socket, and says what it does with each message:
//
//	push 127.0.0.1:8080 http://127.0.0.1:7420
//	push unix:///run/app.sock unix:///run/sidebus.sock
//
// The second address is that of the sidecar's HTTP API, which it needs only for work that takes long.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: push ADDRESS SIDECAR")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "push:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, address, sidecar string) error {
	network := "tcp"
	if path, isUnix := strings.CutPrefix(address, "unix://"); isUnix {
		network, address = "unix", path
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, network, address)
	if err != nil {
		return err
	}
	a := newApp(sidecar)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /on-order", a.onOrder)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Shutdown(context.WithoutCancel(ctx)) }) // calls that run may end
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	a.later.Wait()
	return nil
}

type app struct {
	sidecar string // base of its API
	client  *http.Client
	later   sync.WaitGroup // work that goes on after its call was answered

	mu    sync.Mutex
	tries map[string]int
}

func newApp(sidecar string) *app {
	a := &app{sidecar: sidecar, client: &http.Client{Timeout: 10 * time.Second}, tries: map[string]int{}}
	if path, isUnix := strings.CutPrefix(sidecar, "unix://"); isUnix {
		a.sidecar = "http://sidecar"
		a.client.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}}
	}
	return a
}

// message is what the sidecar sends of a message besides its body.
type message struct {
	DeliveryCount int
	LockToken     string
}

// onOrder deals with one message. The answer says what becomes of it.
func (a *app) onOrder(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var m message
	if err == nil {
		err = json.Unmarshal([]byte(r.Header.Get("BrokerProperties")), &m)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	order := string(body)
	switch {
	case strings.HasPrefix(order, "bad"): // it will never be good: set it aside, with the reason
		w.Header().Set("Sidebus-Settle", "dead-letter")
		w.Header().Set("Sidebus-Reason", "NoSuchTea")
		w.Header().Set("Sidebus-Description", "there is no tea of that name")
		fmt.Printf("%s: set aside\n", order)
	case strings.HasPrefix(order, "busy") && a.isFirst(order): // not now: it comes again in a second
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Printf("%s: not now\n", order)
	// it takes longer than anybody should wait for an answer: settled later, by its token
	case strings.HasPrefix(order, "slow"):
		w.WriteHeader(http.StatusAccepted)
		a.later.Go(func() { a.work(context.WithoutCancel(r.Context()), order, m.LockToken) })
		fmt.Printf("%s: begun\n", order)
	default: // done
		fmt.Printf("%s: done, delivery %d\n", order, m.DeliveryCount)
	}
}

func (a *app) isFirst(order string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tries[order]++
	return a.tries[order] == 1
}

// work does what takes long and completes the message.
func (a *app) work(ctx context.Context, order, token string) {
	select {
	case <-time.After(2 * time.Second): // the work
	case <-ctx.Done():
		return
	}
	if err := a.complete(ctx, token); err != nil {
		fmt.Printf("%s: %v\n", order, err)
		return
	}
	fmt.Printf("%s: done, and completed by its token\n", order)
}

func (a *app) complete(ctx context.Context, token string) error {
	asked, err := json.Marshal(map[string][]string{"lockTokens": {token}})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(
		ctx, http.MethodPost, a.sidecar+"/v1/queues/orders/messages:complete", bytes.NewReader(asked),
	)
	if err != nil {
		return err
	}
	response, err := a.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // only read from
	var answer struct {
		Message string
		Results []struct{ Reason string }
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return err
	}
	if len(answer.Results) != 1 || answer.Results[0].Reason != "" {
		return fmt.Errorf("it could not be completed: %+v", answer)
	}
	return nil
}
