package proxy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// tales is the queue with sessions of these tests.
const (
	tales     = "queues/tales"
	talesPath = "/v1/queues/tales"
)

// openTales makes the queue "tales". options are more members of its JSON, each after a comma.
func (s *sidecar) openTales(t *testing.T, options string) {
	t.Helper()
	mustPut(t, s, talesPath, `{"requiresSession":true`+options+`}`)
}

// inSession is a message of a session.
func inSession(id, content string) *sidebusv1.Message {
	m := text(content)
	m.SessionId = &id
	return m
}

// tell sends texts to a session of "tales".
func (w *wire) tell(t *testing.T, id string, contents ...string) []*sidebusv1.SendResponse_Result {
	t.Helper()
	request := &sidebusv1.SendRequest{Target: tales}
	for _, c := range contents {
		request.Messages = append(request.Messages, inSession(id, c))
	}
	sent, err := w.messages.Send(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	return sent.GetResults()
}

// next takes the next session of "tales" that is ready now, nil when none is.
func (w *wire) next(t *testing.T) *sidebusv1.Session {
	t.Helper()
	accepted, err := w.sessions.Accept(t.Context(), &sidebusv1.SessionsAcceptRequest{Source: tales, MaxWait: &durationpb.Duration{}})
	if err != nil {
		t.Fatal(err)
	}
	return accepted.GetSession()
}

// accept takes a session of "tales" by name.
func (w *wire) accept(t *testing.T, id string) *sidebusv1.Session {
	t.Helper()
	accepted, err := w.sessions.Accept(t.Context(), &sidebusv1.SessionsAcceptRequest{Source: tales, SessionId: &id})
	if err != nil {
		t.Fatal(err)
	}
	if accepted.GetSession().GetSessionId() != id {
		t.Fatalf("accepted %v, want %q", accepted, id)
	}
	return accepted.GetSession()
}

func (w *wire) close(t *testing.T, held *sidebusv1.Session) {
	t.Helper()
	if _, err := w.sessions.Close(t.Context(), &sidebusv1.SessionsCloseRequest{Source: tales, LockToken: held.GetLockToken()}); err != nil {
		t.Fatal(err)
	}
}

// hear receives what a held session of "tales" gives now.
func (w *wire) hear(t *testing.T, held *sidebusv1.Session, most int32) []*sidebusv1.ReceivedMessage {
	t.Helper()
	taken, err := w.messages.Receive(t.Context(), hearNow(held.GetLockToken(), most))
	if err != nil {
		t.Fatal(err)
	}
	return taken.GetMessages()
}

func hearNow(lock string, most int32) *sidebusv1.ReceiveRequest {
	return &sidebusv1.ReceiveRequest{Source: tales, MaxMessages: &most, MaxWait: &durationpb.Duration{}, SessionLockToken: &lock}
}

// rows lists all sessions of "tales".
func (w *wire) rows(t *testing.T) []*sidebusv1.SessionRow {
	t.Helper()
	listed, err := w.sessions.List(t.Context(), &sidebusv1.SessionsListRequest{Source: tales})
	if err != nil || listed.GetNextPageToken() != "" {
		t.Fatalf("got %v, %v", listed, err)
	}
	return listed.GetSessions()
}

// row returns the row of one session, nil when it is not listed.
func (w *wire) row(t *testing.T, id string) *sidebusv1.SessionRow {
	t.Helper()
	for _, row := range w.rows(t) {
		if row.GetSessionId() == id {
			return row
		}
	}
	return nil
}

// seen peeks at "tales".
func (w *wire) seen(t *testing.T, subQueue sidebusv1.SubQueue_Kind) []*sidebusv1.ReceivedMessage {
	t.Helper()
	peeked, err := w.messages.Peek(t.Context(), &sidebusv1.PeekRequest{Source: tales, SubQueue: subQueue, MaxMessages: proto.Int32(250)})
	if err != nil {
		t.Fatal(err)
	}
	return peeked.GetMessages()
}

// sessionPicture is what can be seen of "tales" without changing anything.
type sessionPicture struct {
	Rows               []*sidebusv1.SessionRow
	Messages, DeadOnes []*sidebusv1.ReceivedMessage
}

func (w *wire) sessionPicture(t *testing.T) sessionPicture {
	t.Helper()
	return sessionPicture{w.rows(t), w.seen(t, sidebusv1.SubQueue_NONE), w.seen(t, sidebusv1.SubQueue_DEAD_LETTER)}
}

// unchangedTales is unchanged of "tales".
func (w *wire) unchangedTales(t *testing.T) (check func(t *testing.T)) {
	t.Helper()
	before := w.sessionPicture(t)
	return func(t *testing.T) {
		t.Helper()
		if diff := cmp.Diff(before, w.sessionPicture(t), protocmp.Transform()); diff != "" {
			t.Errorf("something changed (-before +after):\n%s", diff)
		}
	}
}

// reasonOf returns the reason of a failure, "" for none.
func reasonOf(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	return infoOf(t, err).GetReason()
}
