package redisstore_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/audit"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/storetest"
)

// The size in a token of a message of a chunk is not looked at: the chunk has it.
func TestLOCK_2_SizeOfAMessageInAChunk(t *testing.T) {
	t.Parallel()
	s := openSwept(t, redisstore.Options{})
	s.create(t, func(*semantics.Options) {})
	s.send(t, messagesOf(3, semantics.Message{Body: make([]byte, 100)})...)
	batch, err := s.Receive(t.Context(), orders, 3, semantics.RegisterNever)
	if err != nil {
		t.Fatal(err)
	}
	tokens := tokensOf(batch.Messages)
	altered := []semantics.LockToken{redisstore.TokenOfSize(tokens[1], 5000)}
	for _, of := range [][]semantics.LockToken{altered, {tokens[0], tokens[2]}} {
		if codes, err := s.Complete(t.Context(), orders, of); err != nil || slices.ContainsFunc(codes, func(c semantics.Code) bool { return c != "" }) {
			t.Errorf("got %q, %v", codes, err)
		}
		s.audit(t)
	}
	if r, err := s.Runtime(t.Context(), semantics.QueueKind, "orders"); err != nil || r.SizeInBytes != 0 {
		t.Errorf("%d bytes are left, %v", r.SizeInBytes, err)
	}
}

func (s *swept) audit(t *testing.T) {
	t.Helper()
	if err := audit.New(s.raw, s.namespace).Audit(t.Context(), "orders"); err != nil {
		t.Error(err)
	}
}

// Messages of all sizes come back as they were sent, in order, whatever parts of chunks are received and completed.
func TestChunksOfAllSizes(t *testing.T) {
	t.Parallel()
	s := openSwept(t, redisstore.Options{})
	s.create(t, func(*semantics.Options) {})
	var sent []*semantics.Message
	for i := range 120 {
		body := strings.Repeat(string(rune('a'+i%26)), 1<<(i%16))
		if i%17 == 0 {
			body = ""
		}
		sent = append(sent, &semantics.Message{MessageID: fmt.Sprint(i), Body: []byte(body)})
	}
	for _, n := range []int{1, 2, 3, 30, 33, 51} {
		s.send(t, sent[:n]...)
		sent = append(sent[n:], sent[:n]...)
	}
	got := 0
	for _, limit := range []int{1, 2, 5, 7, 31, 32, 33, 100} {
		batch, err := s.Receive(t.Context(), orders, limit, semantics.RegisterNever)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range batch.Messages {
			if want := sent[got]; m.MessageID != want.MessageID || string(m.Body) != string(want.Body) || m.SequenceNumber != int64(got+1) || m.Size != want.Size() {
				t.Fatalf("message %d has id %s, %d bytes, number %d, size %d", got, m.MessageID, len(m.Body), m.SequenceNumber, m.Size)
			}
			got++
		}
		s.audit(t)
		tokens := tokensOf(batch.Messages)
		slices.Reverse(tokens)
		for len(tokens) > 0 {
			some := tokens[:(len(tokens)+2)/3]
			if codes, err := s.Complete(t.Context(), orders, some); err != nil || slices.ContainsFunc(codes, func(c semantics.Code) bool { return c != "" }) {
				t.Fatalf("got %q, %v", codes, err)
			}
			s.audit(t)
			tokens = tokens[len(some):]
		}
	}
	if r, err := s.Runtime(t.Context(), semantics.QueueKind, "orders"); err != nil || got != 120 || r.SizeInBytes != 0 {
		t.Errorf("%d messages came, %d bytes are left, %v", got, r.SizeInBytes, err)
	}
	if n := s.raw.Exists(t.Context(), s.key("log"), s.key("chunks")).Val(); n > 1 {
		t.Error("chunks are left")
	}
}

// A version that knows no chunks fails at a queue that has some, and changes nothing, until another queue takes its
// place.
func TestVersionsBeforeChunksStopThere(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	s := openSwept(t, redisstore.Options{Now: clock.Now})
	s.create(t, func(o *semantics.Options) { o.LockDuration = semantics.MinLockDuration })
	s.send(t, messagesOf(40, semantics.Message{})...)
	if _, err := s.Receive(t.Context(), orders, 20, semantics.RegisterNever); err != nil {
		t.Fatal(err)
	}
	clock.Advance(semantics.MinLockDuration) // a sweep has something to do
	older := redistest.Open(t, redisstore.Options{Namespace: s.namespace, Now: clock.Now})
	older.BehaveAsBeforeChunks()
	before := dump(t, s.namespace)
	for what, err := range map[string]error{
		"receive": second(older.Receive(t.Context(), orders, 1, semantics.RegisterNever)),
		"peek":    second(older.Peek(t.Context(), orders, 0, 10, semantics.ShowAll)),
		"runtime": second(older.Runtime(t.Context(), semantics.QueueKind, "orders")),
		"sweep":   older.SweepOnce(t.Context(), brokerOver(older)),
	} {
		if err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if after := dump(t, s.namespace); !slices.Equal(before, after) {
		t.Errorf("changed from\n%s\nto\n%s", before, after)
	}
	if batch, err := s.Receive(t.Context(), orders, 100, semantics.RegisterNever); err != nil || len(batch.Messages) != 40 {
		t.Errorf("this version gets %d of 40 messages, %v", len(batch.Messages), err)
	}
	s.audit(t)
}

// Of a chunk that this version cannot read, each message comes alone, as unreadable as any other.
func TestChunkThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(fields []string){
		"another format":  func(fields []string) { fields[1] = "\x7f" + fields[1][1:] },
		"nothing":         func(fields []string) { fields[1] = "" },
		"lengths too big": func(fields []string) { fields[3] = "5:9999999,5:1,5:1" },
		"no lengths":      func(fields []string) { fields[3] = "a,b,c" },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := openSwept(t, redisstore.Options{})
			s.create(t, func(*semantics.Options) {})
			s.send(t, messagesOf(3, semantics.Message{Body: []byte("body")})...)
			entry := s.raw.XRange(t.Context(), s.key("log"), "-", "+").Val()[0]
			rows, _ := s.raw.Do(t.Context(), "XRANGE", s.key("log"), "-", "+").Slice()
			var fields []string
			for _, field := range rows[0].([]any)[1].([]any) {
				fields = append(fields, field.(string))
			}
			change(fields)
			s.raw.XDel(t.Context(), s.key("log"), entry.ID)
			s.raw.Del(t.Context(), s.key("log")) // or an older id cannot come again
			if err := s.raw.XAdd(t.Context(), &redis.XAddArgs{Stream: s.key("log"), ID: entry.ID, Values: fields}).Err(); err != nil {
				t.Fatal(err)
			}
			batch, err := s.Receive(t.Context(), orders, 10, semantics.RegisterNever)
			if err != nil || len(batch.Messages) != 3 {
				t.Fatalf("got %d messages, %v", len(batch.Messages), err)
			}
			for _, m := range batch.Messages {
				if m.Unreadable == nil {
					t.Errorf("message %d can be read", m.SequenceNumber)
				}
			}
			if codes, err := s.Complete(t.Context(), orders, tokensOf(batch.Messages)); err != nil || codes[0]+codes[1]+codes[2] != "" {
				t.Error(codes, err)
			}
		})
	}
}
