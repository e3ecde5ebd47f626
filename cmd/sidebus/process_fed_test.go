package main

import (
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// fedStream is a stream that receives and completes texts, and knows which ones are still to come.
type fedStream struct {
	t *testing.T

	mu     sync.Mutex
	wanted map[string]bool
	came   map[string]bool
}

func openFedStream(t *testing.T, s *sidecartest.Sidecar, queue string) *fedStream {
	t.Helper()
	conn, err := grpc.NewClient(s.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	stream, err := sidebusv1.NewMessagesClient(conn).Subscribe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	open := &sidebusv1.SubscribeOpen{Source: "queues/" + queue, Credits: proto.Int32(100)}
	if err := stream.Send(&sidebusv1.SubscribeRequest{Request: &sidebusv1.SubscribeRequest_Open{Open: open}}); err != nil {
		t.Fatal(err)
	}
	if answer, err := stream.Recv(); err != nil || answer.GetOpened() == nil {
		t.Fatal(answer, err)
	}
	f := &fedStream{t: t, wanted: map[string]bool{}, came: map[string]bool{}}
	var reading sync.WaitGroup
	reading.Go(func() { f.read(stream) })
	t.Cleanup(func() {
		_ = conn.Close()
		reading.Wait()
	})
	return f
}

// read takes what comes until the connection ends.
func (f *fedStream) read(stream sidebusv1.Messages_SubscribeClient) {
	for {
		answer, err := stream.Recv()
		if err != nil {
			return
		}
		var tokens []string
		for _, d := range answer.GetDeliveries().GetDeliveries() {
			for _, m := range d.GetMessages() {
				tokens = append(tokens, m.GetLockToken())
				f.note(m.GetText())
			}
		}
		if len(tokens) == 0 {
			continue
		}
		_ = stream.Send(&sidebusv1.SubscribeRequest{Request: &sidebusv1.SubscribeRequest_Settle{Settle: &sidebusv1.SubscribeSettle{
			LockTokens: tokens, Verb: &sidebusv1.SubscribeSettle_Complete{Complete: &sidebusv1.CompleteRequest{}},
		}}})
	}
}

func (f *fedStream) note(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.came[text] = true
	delete(f.wanted, text)
}

// expect notes that a text was sent.
func (f *fedStream) expect(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.came[text] {
		f.wanted[text] = true
	}
}

// await waits until all that was sent has come.
func (f *fedStream) await() {
	f.t.Helper()
	sidecartest.Eventually(f.t, "the stream has all that was sent", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.wanted) == 0
	})
}
