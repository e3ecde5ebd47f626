package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

type answer struct {
	status int
	body   string
}

func get(ctx context.Context, url string) (answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return answer{}, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close() //nolint:errcheck // only read from
	body, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, string(body)}, err
}

// status is 0 when there was no answer.
func status(ctx context.Context, url string) int {
	a, err := get(ctx, url)
	if err != nil {
		return 0
	}
	return a.status
}

// until asks until the answer is yes.
func until(ctx context.Context, what string, yes func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for !yes() {
		select {
		case <-look.C:
		case <-ctx.Done():
			return fmt.Errorf("it did not happen: %s", what)
		}
	}
	return nil
}

// freePorts returns ports on which nothing listens.
func freePorts(n int) ([]int, error) {
	ports := make([]int, n)
	for i := range ports {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer listener.Close() //nolint:errcheck // only its port is wanted
		ports[i] = listener.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}
