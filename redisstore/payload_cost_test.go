//go:build !race

// The race detector allocates too.

package redisstore

import (
	"testing"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/sealed"
)

// ordinary is a message as most are, with a body of 1 KiB.
func ordinary() *semantics.Message {
	return &semantics.Message{
		MessageID: "0d6b2bcb-6a5e-4a3e-9f0c-2d8e5f3c1a77", Subject: "created", Body: make([]byte, 1024),
		Properties: map[string]semantics.Value{"region": semantics.String("eu"), "total": semantics.Int64(120)},
	}
}

// sealsWithOne returns the encryption of a sidecar with one key.
func sealsWithOne(tb testing.TB) sealing {
	tb.Helper()
	key, err := sealed.NewKey("2026-11", make([]byte, sealed.KeySize))
	if err != nil {
		tb.Fatal(err)
	}
	keys, err := sealed.NewKeys("2026-11", key)
	if err != nil {
		tb.Fatal(err)
	}
	return sealing{keys: func() *sealed.Keys { return keys }}
}

// Without payload keys a message takes as many allocations on its way to Redis and back as before there was encryption:
// the numbers are of the commit before it. With a key it takes a few more. A change that raises a number says why.
func TestCRYPT_1_AllocationsOfAMessage(t *testing.T) { //nolint:paralleltest // it counts what the process allocates
	for _, c := range []struct {
		name           string
		with           sealing
		encode, decode float64
	}{
		{"without keys", sealing{}, 0, 2},
		{"with a key", sealsWithOne(t), 8, 9},
	} {
		m, buffer := ordinary(), make([]byte, 0, 4096)
		encode := testing.AllocsPerRun(500, func() {
			if _, err := c.with.append(buffer[:0], m); err != nil {
				t.Fatal(err)
			}
		})
		stored, err := c.with.encode(m)
		if err != nil {
			t.Fatal(err)
		}
		payload := string(stored)
		decode := testing.AllocsPerRun(500, func() {
			var back semantics.Message
			if _, err := c.with.decode(payload, &back); err != nil {
				t.Fatal(err)
			}
		})
		if encode != c.encode || decode != c.decode {
			t.Errorf("%s: %v allocations to encode and %v to decode, want %v and %v", c.name, encode, decode, c.encode, c.decode)
		}
	}
}

// BenchmarkPayload is what encryption costs a message: it is encoded for Redis and decoded again.
func BenchmarkPayload(b *testing.B) {
	for _, c := range []struct {
		name string
		with sealing
	}{{"off", sealing{}}, {"on", sealsWithOne(b)}} {
		b.Run(c.name, func(b *testing.B) {
			m := ordinary()
			b.ReportAllocs()
			for b.Loop() {
				stored, err := c.with.encode(m)
				if err != nil {
					b.Fatal(err)
				}
				var back semantics.Message
				if _, err := c.with.decode(string(stored), &back); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
