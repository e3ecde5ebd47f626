package proxy_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// state reads the state of a held session.
func (w *wire) state(t *testing.T, held *sidebusv1.Session) *sidebusv1.SessionsGetStateResponse {
	t.Helper()
	state, err := w.sessions.GetState(t.Context(), &sidebusv1.SessionsGetStateRequest{Source: tales, LockToken: held.GetLockToken()})
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// setState sets the state of a held session, nil clears it, and gives its version.
func (w *wire) setState(t *testing.T, held *sidebusv1.Session, state []byte) int64 {
	t.Helper()
	set, err := w.sessions.SetState(t.Context(), &sidebusv1.SessionsSetStateRequest{Source: tales, LockToken: held.GetLockToken(), State: state})
	if err != nil {
		t.Fatal(err)
	}
	return set.GetVersion()
}

// sameState compares a state, where absent and empty differ.
func sameState(got, want []byte) bool { return (got == nil) == (want == nil) && bytes.Equal(got, want) }

func TestSESS_33_StateIsKept(t *testing.T) {
	t.Parallel()
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openTales(t, "")
		held := w.accept(t, "s")
		if got := w.state(t, held); got.State != nil || got.GetVersion() != 0 {
			t.Errorf("none was set: got %v", got)
		}
		last := int64(0)
		for _, state := range [][]byte{all, {}, []byte("text"), nil, {0}, nil, {}} {
			version := w.setState(t, held, state)
			switch {
			case state == nil && version != 0:
				t.Errorf("a state that is cleared has version %d", version)
			case state != nil && version <= last:
				t.Errorf("version %d came after %d", version, last)
			case state != nil:
				last = version
			}
			if got := w.state(t, held); !sameState(got.State, state) || got.GetVersion() != version {
				t.Errorf("got %v, want %v version %d", got, state, version)
			}
			w.close(t, held)
			held = w.accept(t, "s") // SESS-31: for the next holder
			if !sameState(held.State, state) || held.GetStateVersion() != version {
				t.Errorf("accepted %v, want %v version %d", held, state, version)
			}
		}
	})
}

func TestSESS_33a_ExpectedVersion(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openTales(t, "")
		held := w.accept(t, "s")
		set := func(expected int64, state []byte) *sidebusv1.SessionsSetStateRequest {
			return &sidebusv1.SessionsSetStateRequest{Source: tales, LockToken: held.GetLockToken(), State: state, ExpectedVersion: &expected}
		}
		conflict := func(name string, request *sidebusv1.SessionsSetStateRequest) {
			t.Helper()
			before := w.state(t, held)
			refuse(name, "PRECONDITION_FAILED", "", settingState, request).check(t, w.sessions)
			if after := w.state(t, held); !proto.Equal(before, after) {
				t.Errorf("%s: got %v, want %v", name, after, before)
			}
		}
		done := func(request *sidebusv1.SessionsSetStateRequest) int64 {
			t.Helper()
			answer, err := w.sessions.SetState(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			return answer.GetVersion()
		}
		conflict("one that never was", set(7, []byte("x")))
		first := done(set(0, []byte("first")))
		conflict("none, but there is one", set(0, []byte("x")))
		second := done(set(first, []byte("second")))
		conflict("an old one", set(first, nil))
		if n := done(set(second, nil)); n != 0 {
			t.Errorf("cleared: got version %d", n)
		}
		conflict("of what was cleared", set(second, []byte("x")))
		if third := done(set(0, []byte{})); third <= second {
			t.Errorf("version %d came after %d", third, second)
		}
		refuse("negative", outOfRange, "expectedVersion", settingState, set(-1, nil)).check(t, w.sessions)
	})
}

func TestSESS_32_LargestState(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openTales(t, `,"maxMessageSizeInKilobytes":300,"maxSizeInMegabytes":1`)
		held := w.accept(t, "s")
		const most = 300 << 10
		w.setState(t, held, make([]byte, most))
		_, err := w.sessions.SetState(t.Context(), &sidebusv1.SessionsSetStateRequest{Source: tales, LockToken: held.GetLockToken(), State: make([]byte, most+1)})
		if info := infoOf(t, err); info.GetReason() != "SESSION_STATE_TOO_LARGE" || info.GetMetadata()["limit"] != "307200" || info.GetMetadata()["actual"] != "307201" {
			t.Errorf("one byte more: got %v", info)
		}
		for _, id := range []string{"b", "c"} {
			w.setState(t, w.accept(t, id), make([]byte, most))
		}
		full := &sidebusv1.SessionsSetStateRequest{Source: tales, LockToken: w.accept(t, "d").GetLockToken(), State: make([]byte, most)}
		refuse("SESS-33c full", "ENTITY_FULL", "", settingState, full).check(t, w.sessions)
		if row := w.row(t, "s"); row.GetStateSize() != most || row.GetStateVersion() == 0 {
			t.Errorf("got %v", row)
		}
		w.setState(t, held, nil)
		if _, err := w.sessions.SetState(t.Context(), full); err != nil {
			t.Errorf("after one was cleared: %v", err)
		}
	})
}

// A state is written in any alphabet of base64 and read in the standard one; null and absent clear, "" does not.
func TestJSONOfState(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := start(t, memstore.New(memstore.WithClock(func() time.Time { return at })))
	s.openTales(t, "")
	accepted := s.call(t, http.MethodPost, talesPath+"/sessions:accept", `{"sessionId":"s"}`).body
	_, rest, _ := strings.Cut(accepted, `"lockToken":"`)
	token, _, _ := strings.Cut(rest, `"`)
	verb := func(name, members string) answer {
		return s.call(t, http.MethodPost, talesPath+"/sessions:"+name, `{"lockToken":"`+token+`"`+members+`}`)
	}
	for _, c := range []struct{ set, answer, state string }{
		{`,"state":"-_8"`, `{"version":"1"}`, `{"state":"+/8=","version":"1"}`},
		{`,"state":""`, `{"version":"2"}`, `{"state":"","version":"2"}`},
		{`,"state":null`, `{"version":"0"}`, `{"version":"0"}`},
		{`,"state":"\/w==","expectedVersion":0`, `{"version":"3"}`, `{"state":"/w==","version":"3"}`},
		{`,"expected_version":"3"`, `{"version":"0"}`, `{"version":"0"}`},
		{``, `{"version":"0"}`, `{"version":"0"}`},
	} {
		if a := verb("setState", c.set); a.status != http.StatusOK || a.body != c.answer {
			t.Errorf("set %s: got %d %s, want %s", c.set, a.status, a.body, c.answer)
		}
		if a := verb("getState", ""); a.body != c.state {
			t.Errorf("after %s: got %d %s, want %s", c.set, a.status, a.body, c.state)
		}
	}
	if a := verb("renewLock", ""); a.body != `{"lockedUntil":"2026-01-02T03:05:05Z"}` {
		t.Errorf("renew: got %d %s", a.status, a.body)
	}
	if a := verb("close", ""); a.body != `{}` {
		t.Errorf("close: got %d %s", a.status, a.body)
	}
	if a := verb("close", ""); a.status != http.StatusGone {
		t.Errorf("close again: got %d %s", a.status, a.body)
	}
}
