package redisstore_test

import (
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
)

// Each of two sidecars is the holder of the sessions it has accepted, and each waits under its name.
func TestCNT_6_SidecarsHaveNames(t *testing.T) {
	t.Parallel()
	options := redisstore.Options{URL: redistest.URL(t), Namespace: redistest.Namespace()}
	one, other := redistest.Open(t, options), redistest.Open(t, options)
	with := semantics.DefaultOptions()
	with.RequiresSession = true
	_, _, err := one.CreateEntity(t.Context(), semantics.QueueKind, "tales", with)
	must(t, err)
	_, err = one.AcceptSession(t.Context(), "tales", "a")
	must(t, err)
	_, err = other.AcceptSession(t.Context(), "tales", "b")
	must(t, err)
	_, _, err = other.AcceptNextSession(t.Context(), "tales", semantics.RegisterAlways)
	must(t, err)
	who, err := one.Receivers(t.Context(), "tales", 10)
	must(t, err)
	holders := map[string]string{}
	for _, session := range who.Held {
		holders[session.ID] = session.Holder
	}
	if one.Sidecar() == other.Sidecar() || len(holders) != 2 || holders["a"] != one.Sidecar() || holders["b"] != other.Sidecar() {
		t.Errorf("%s and %s hold %v", one.Sidecar(), other.Sidecar(), holders)
	}
	if len(who.Waiting) != 1 || who.Waiting[0].Sidecar != other.Sidecar() || time.Since(who.Waiting[0].Since) > time.Minute {
		t.Errorf("%+v wait", who.Waiting)
	}
}
