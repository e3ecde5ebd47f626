package storetest

import (
	"pgregory.net/rapid"

	"github.com/sidebus/sidebus/semantics"
)

func (m *model) sessionState(rt *rapid.T) {
	h := m.drawHold(rt)
	_, ok := underHold(rt, m, "session state", h, func(s semantics.Store, source semantics.Source) (semantics.SessionState, error) {
		return s.SessionState(m.ctx, source)
	})
	m.looked(ok)
}

// setSessionState sets or clears a state, most often without asking for its version or with the right one.
func (m *model) setSessionState(rt *rapid.T) {
	h := m.drawHold(rt)
	data, expected := m.drawState(rt, h)
	version, ok := underHold(rt, m, "set session state", h, func(s semantics.Store, source semantics.Source) (int64, error) {
		return s.SetSessionState(m.ctx, source, data, expected)
	})
	m.looked(ok)
	if ok {
		m.stateWasSet(rt, h, data, expected, version)
	}
}

// drawState draws the state of a session, and most often the version that it has.
func (m *model) drawState(rt *rapid.T, h *hold) (data []byte, expected *int64) {
	data = rapid.SampledFrom([][]byte{nil, {}, []byte("s"), []byte("a longer state"), make([]byte, 1100), make([]byte, 250<<10)}).Draw(rt, "state")
	if rapid.Bool().Draw(rt, "has version") {
		version := rapid.SampledFrom([]int64{m.versions[h.session], m.versions[h.session], 0, 1, 2}).Draw(rt, "version")
		expected = &version
	}
	return data, expected
}

// stateWasSet checks the version that a state got, and notes it.
func (m *model) stateWasSet(rt *rapid.T, h *hold, data []byte, expected *int64, version int64) {
	rt.Helper()
	if expected != nil && *expected != m.versions[h.session] {
		rt.Fatalf("the state of session %q was set as if it had version %d, but it has %d", h.session, *expected, m.versions[h.session])
	}
	if (version == 0) != (data == nil) || m.pastVersions[version] {
		rt.Fatalf("the state of session %q was set to %d bytes and got version %d, which is that of none or of another one", h.session, len(data), version)
	}
	m.versions[h.session], m.pastVersions[version] = version, version != 0
}
