// Package history lets senders and holders of sessions work through sidecars of their own on one Redis, does to them
// what happens in production - kills, pauses longer than a lock, drains, clients that vanish - and then checks all that
// they saw against the invariants of sessions: one holder at a time and no late one (I3, I5), order (I4), counts (I7),
// dead letters (I8), recovery (I15), drains (I16), and that nothing is lost (I1). Other histories are of a Redis that
// forgets while sidecars work on it: see losses_test.go.
package history

import (
	"testing"

	"github.com/sidebus/sidebus/test/sidecartest"
)

func TestMain(m *testing.M) { sidecartest.Main(m) }
