package history

import (
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// taken is a session with its first message, as the one who waited for it got it.
type taken struct {
	at    time.Time
	count int32
	state string
}

// takeOver lets one sidecar hold the only session of a queue, with an unsettled message and a state, and another one
// wait for a session. It returns what the other one got after end was done to the first, and when the first one's lock
// would have expired.
func takeOver(t *testing.T, lock time.Duration, end func(first *sidecartest.Sidecar)) (got taken, lockEnd time.Time) {
	t.Helper()
	namespace := redistest.Namespace()
	store := redistest.Open(t, redisstore.Options{Namespace: namespace})
	options := semantics.DefaultOptions()
	options.RequiresSession, options.LockDuration = true, lock
	if _, _, err := store.CreateEntity(t.Context(), semantics.QueueKind, queue, options); err != nil {
		t.Fatal(err)
	}
	var sides [2]*process
	for i := range sides {
		var err error
		sides[i], err = connect(sidecartest.Start(t, "--store", redistest.URL(t), "--namespace", namespace, "--drain-timeout", "0s"))
		if err != nil {
			t.Fatal(err)
		}
		defer sides[i].conn.Close()
	}
	if _, err := store.Send(t.Context(), queue, []*semantics.Message{{SessionID: "s", Body: []byte("1"), BodyKind: semantics.BodyText}}); err != nil {
		t.Fatal(err)
	}
	accept := func(p *process) *sidebusv1.Session {
		response, err := p.sessions.Accept(t.Context(), &sidebusv1.SessionsAcceptRequest{Source: source, MaxWait: wire(sidecartest.Patience)})
		if err != nil || response.GetSession() == nil {
			t.Errorf("accept: %v, %v", response, err)
		}
		return response.GetSession()
	}
	receive := func(p *process, held *sidebusv1.Session) *sidebusv1.ReceivedMessage {
		response, err := p.messages.Receive(t.Context(), &sidebusv1.ReceiveRequest{
			Source: source, SessionLockToken: proto.String(held.GetLockToken()), MaxWait: wire(0),
		})
		if err != nil || len(response.GetMessages()) != 1 {
			t.Errorf("receive: %v, %v", response, err)
			return nil
		}
		return response.GetMessages()[0]
	}
	held := accept(sides[0])
	receive(sides[0], held)
	_, err := sides[0].sessions.SetState(t.Context(), &sidebusv1.SessionsSetStateRequest{Source: source, LockToken: held.GetLockToken(), State: []byte("note")})
	if err != nil {
		t.Fatal(err)
	}
	waited := make(chan taken)
	go func() {
		session := accept(sides[1])
		at := time.Now()
		waited <- taken{at: at, count: receive(sides[1], session).GetDeliveryCount(), state: string(session.GetState())}
	}()
	raw := rawClient(t)
	sidecartest.Eventually(t, "the other sidecar waits", func() bool {
		return raw.ZCard(t.Context(), "sb:{"+namespace+"/"+queue+"}:waiting").Val() == 1
	})
	end(sides[0].Sidecar)
	return <-waited, held.GetLockedUntil().AsTime()
}

// A client that waits for a session gets that of a killed sidecar within a second of its lock's end, counted, and with
// the state (I15).
func TestSESS_30_SessionOfAKilledSidecar(t *testing.T) {
	t.Parallel()
	got, lockEnd := takeOver(t, time.Second, (*sidecartest.Sidecar).Kill)
	late := got.at.Sub(lockEnd)
	t.Logf("taken %s after the end of the lock", late)
	if late < 0 || late > time.Second {
		t.Errorf("taken %s after the end of the lock, want 0 to 1s", late)
	}
	if got.count != 2 || got.state != "note" {
		t.Errorf("got delivery %d with state %q, want 2 with the note", got.count, got.state)
	}
}

// A sidecar that is told to stop gives its sessions back as it goes: they are taken at once, and nothing is counted
// (I15, I16).
func TestSESS_30_SessionOfADrainedSidecar(t *testing.T) {
	t.Parallel()
	for try := 1; ; try++ {
		var told time.Time
		got, _ := takeOver(t, time.Minute, func(first *sidecartest.Sidecar) {
			told = time.Now()
			first.Signal(syscall.SIGTERM)
		})
		if got.count != 1 || got.state != "note" {
			t.Errorf("got delivery %d with state %q, want 1 with the note", got.count, got.state)
		}
		took := got.at.Sub(told)
		t.Logf("taken %s after the signal", took)
		if took <= 200*time.Millisecond {
			return
		}
		if try == 5 { // a busy machine may be slow once or twice
			t.Fatal("never taken within 200ms")
		}
	}
}
