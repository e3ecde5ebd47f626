package sidecartest

import (
	"context"
	"net/http"
	"testing"
)

// Scaler is one "sidebus scaler" process.
type Scaler struct {
	Addr, Probes string // addresses, host:port; empty if the process ended before it listened

	process
}

// LaunchScaler starts a scaler on free ports with further flags, and waits until it listens or has ended. The test kills
// it at its end.
func LaunchScaler(t testing.TB, args ...string) *Scaler {
	t.Helper()
	const free = "127.0.0.1:0"
	s := &Scaler{process: launch(t, Binary(t), append([]string{"scaler", "--addr", free, "--probe-addr", free}, args...)...)}
	Eventually(t, "the scaler listens or ends", func() bool {
		at, listens := s.log.addresses("the scaler is listening")
		s.Addr, s.Probes = at.Addr, at.Probes
		return listens || s.HasExited()
	})
	return s
}

// Probe gets a page of the address of probes.
func (s *Scaler) Probe(ctx context.Context, path string) Answer {
	return call(ctx, http.MethodGet, "http://"+s.Probes+path, "")
}
