package grpcapi

import (
	"context"
	"math"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/internal/admission"
)

// What is decoded and encoded by hand is what the generated code has.
func TestMultiplexWire(t *testing.T) {
	t.Parallel()
	data, err := proto.Marshal(&sidebusv1.MultiplexRequest{
		Calls: []*sidebusv1.MultiplexRequest_Call{
			{Id: 1, Method: "/a/B", Request: []byte("request")},
			{Id: 1 << 60, Method: "/c/D", Timeout: durationpb.New(time.Minute), Metadata: map[string]string{"authorization": "v", "l": ""}},
		},
		Cancelled: []uint64{7, 1 << 50},
	})
	if err != nil {
		t.Fatal(err)
	}
	var r multiplexRequest
	if err := r.decode(data); err != nil {
		t.Fatal(err)
	}
	a, b := r.calls[0], r.calls[1]
	if len(r.calls) != 2 || a.id != 1 || a.method != "/a/B" || string(a.request) != "request" || a.timeout != nil || a.metadata != nil {
		t.Errorf("got %+v", r.calls)
	}
	if b.id != 1<<60 || b.method != "/c/D" || *b.timeout != time.Minute || !reflect.DeepEqual(b.metadata, metadata.MD{"authorization": {"v"}}) || b.err != nil {
		t.Errorf("got %+v", b)
	}
	if !slices.Equal(r.cancelled, []uint64{7, 1 << 50}) || r.size != len(data) {
		t.Errorf("got %+v", r)
	}
	for cut := range data {
		_ = r.decode(data[:cut]) // must not panic
	}
	for _, size := range []int{0, 1, 100, maxPart, 3*maxPart + 5} {
		want := &sidebusv1.PublishRequest{Target: string(make([]byte, size))}
		answer, err := encodeAnswer(300, want)
		if err != nil {
			t.Fatal(err)
		}
		var response []byte
		for answer.whole == nil && len(answer.rest) > 0 {
			response = append(response, answer.nextPart().Materialize()...)
		}
		if answer.whole != nil {
			response = answer.whole.ReadOnlyData()
		}
		decoded := &sidebusv1.MultiplexResponse{}
		if err := proto.Unmarshal(response, decoded); err != nil {
			t.Fatal(err)
		}
		var whole []byte
		for i, a := range decoded.GetAnswers() {
			if a.GetId() != 300 || a.GetMore() != (i < len(decoded.GetAnswers())-1) || len(a.GetResponse()) > maxPart {
				t.Errorf("%d bytes, part %d: id %d, more %t", size, i, a.GetId(), a.GetMore())
			}
			whole = append(whole, a.GetResponse()...)
		}
		got := &sidebusv1.PublishRequest{}
		if err := proto.Unmarshal(whole, got); err != nil || !proto.Equal(got, want) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// Small answers pass the parts of large ones, several large ones take turns, and while nothing is read no more is
// accepted.
func TestMultiplexAnswersTakeTurns(t *testing.T) {
	t.Parallel()
	sending, released := make(chan *sidebusv1.MultiplexResponse), make(chan struct{})
	q := newAnswerQueue(func(response mem.BufferSlice) error {
		decoded := &sidebusv1.MultiplexResponse{}
		if err := proto.Unmarshal(response.Materialize(), decoded); err != nil {
			t.Error(err)
		}
		sending <- decoded
		<-released
		return nil
	}, func() int { return 1 })
	finished := make(chan uint64, 10)
	add := func(id uint64, size int) {
		answer, err := encodeAnswer(id, &sidebusv1.PublishRequest{Target: string(make([]byte, size))})
		if err != nil {
			t.Error(err)
		}
		answer.finished = func(bool) { finished <- id }
		q.add(&answer)
	}
	go add(1, 1)
	<-sending // from now on, what is added waits
	add(2, 2*maxPart)
	add(3, 2*maxPart)
	add(4, 1)
	add(5, maxUnsent)
	hasSpace := make(chan struct{})
	go func() {
		q.awaitSpace()
		close(hasSpace)
	}()
	var order []uint64
	for range 6 {
		released <- struct{}{}
		for _, a := range (<-sending).GetAnswers() {
			order = append(order, a.GetId())
		}
	}
	if want := []uint64{4, 2, 3, 5, 2, 3, 5}; !slices.Equal(order, want) {
		t.Errorf("sent %v, want %v", order, want)
	}
	for {
		select {
		case released <- struct{}{}:
		case <-sending:
		case id := <-finished:
			if id != 5 {
				continue
			}
			<-hasSpace
			return
		}
	}
}

// What its client has cancelled is not sent any more: a small answer that waits, and the rest of a large one.
func TestRECV_7_AnswersNotAwaitedAreDropped(t *testing.T) {
	t.Parallel()
	sending, released := make(chan *sidebusv1.MultiplexResponse), make(chan struct{})
	q := newAnswerQueue(func(response mem.BufferSlice) error {
		decoded := &sidebusv1.MultiplexResponse{}
		if err := proto.Unmarshal(response.Materialize(), decoded); err != nil {
			t.Error(err)
		}
		sending <- decoded
		<-released
		return nil
	}, func() int { return 1 })
	var mu sync.Mutex
	written := map[uint64]bool{}
	calls := map[uint64]*multiplexedCall{}
	add := func(id uint64, size int) {
		answer, err := encodeAnswer(id, &sidebusv1.PublishRequest{Target: string(make([]byte, size))})
		if err != nil {
			t.Error(err)
		}
		calls[id] = &multiplexedCall{}
		answer.call = calls[id]
		answer.finished = func(ok bool) {
			mu.Lock()
			defer mu.Unlock()
			written[id] = ok
		}
		q.add(&answer)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		add(1, 1)
	}()
	<-sending // from now on, what is added waits
	add(2, 3*maxPart)
	add(3, 1)
	add(4, 3*maxPart)
	released <- struct{}{}
	if first := <-sending; len(first.GetAnswers()) != 2 || first.GetAnswers()[0].GetId() != 3 || first.GetAnswers()[1].GetId() != 2 {
		t.Errorf("sent %v", first)
	}
	add(5, 1)
	add(6, 1)
	calls[2].isCancelled.Store(true)
	calls[5].isCancelled.Store(true)
	var order []uint64
	for {
		select {
		case response := <-sending:
			for _, a := range response.GetAnswers() {
				order = append(order, a.GetId())
			}
		case released <- struct{}{}:
		case <-ended:
			if want := []uint64{6, 4, 4, 4, 4}; !slices.Equal(order, want) {
				t.Errorf("then sent %v, want %v", order, want)
			}
			want := map[uint64]bool{1: true, 2: false, 3: true, 4: true, 5: false, 6: true}
			if !reflect.DeepEqual(written, want) || q.unsent != 0 {
				t.Errorf("written: %v, want %v; %d bytes are not sent", written, want, q.unsent)
			}
			return
		}
	}
}

// The idle goroutines of all streams together are bounded, and there are none when the last stream has ended.
func TestIdleWorkersAreBounded(t *testing.T) {
	t.Parallel()
	const streams, callsOfEach = 10, 50
	c := &multiplexer{}
	var running, finished sync.WaitGroup
	hold := make(chan struct{})
	c.methods = map[string]method{"": {call: func(any, context.Context, func(any) error) (any, error) {
		running.Done()
		<-hold
		return &sidebusv1.SendResponse{}, nil
	}}}
	running.Add(streams * callsOfEach)
	finished.Add(streams * callsOfEach)
	for range streams {
		m := &multiplex{multiplexer: c, admitted: admission.BeginMultiplex(t.Context()), unanswered: map[uint64]*multiplexedCall{}}
		m.answers = newAnswerQueue(func(mem.BufferSlice) error { return nil }, func() int { return 1 })
		c.workers.open()
		for id := range uint64(callsOfEach) {
			ctx, cancel := context.WithCancel(t.Context())
			call := &multiplexedCall{calledMethod: calledMethod{id: id + 1}, of: m, ctx: ctx, cancel: func() {
				cancel()
				finished.Done()
			}}
			if _, err := m.begin(call); err != nil {
				t.Fatal(err)
			}
			c.workers.start(call)
		}
	}
	running.Wait()
	close(hold)
	finished.Wait()
	for range streams - 1 {
		c.workers.close()
	}
	c.workers.mu.Lock()
	if n := len(c.workers.idle); n > maxIdleMultiplexWorkers {
		t.Errorf("%d goroutines are idle", n)
	}
	c.workers.mu.Unlock()
	c.workers.close()
	if n := len(c.workers.idle); n != 0 {
		t.Errorf("without a stream %d goroutines are idle", n)
	}
}

// A call that has been decoded, and may wait for minutes, does not keep the request that it came in.
func TestCallKeepsNoRequest(t *testing.T) {
	t.Parallel()
	encoded, err := proto.Marshal(&sidebusv1.ReceiveRequest{Source: "queues/q"})
	if err != nil {
		t.Fatal(err)
	}
	c, got := &calledMethod{request: encoded}, &sidebusv1.ReceiveRequest{}
	if err := c.decode(got); err != nil || got.GetSource() != "queues/q" || c.request != nil {
		t.Errorf("got %v, %v; %d bytes are kept", got, err, len(c.request))
	}
}

// What is decoded by hand, or not, is what the generated code decodes, or not.
func FuzzMultiplexRequest(f *testing.F) {
	for _, seed := range []*sidebusv1.MultiplexRequest{
		{},
		{Calls: []*sidebusv1.MultiplexRequest_Call{{Id: 1, Method: "/a/B", Request: []byte("request")}}, Cancelled: []uint64{1, 1 << 60}},
		{Calls: []*sidebusv1.MultiplexRequest_Call{{Timeout: durationpb.New(-time.Second), Metadata: map[string]string{"authorization": "x", "": ""}}, {}}},
		{Calls: []*sidebusv1.MultiplexRequest_Call{{Id: math.MaxUint64, Timeout: &durationpb.Duration{Seconds: math.MaxInt64, Nanos: -1}}}},
	} {
		data, err := proto.Marshal(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte{0x0a, 4, 0x08, 1, 0x78, 1})             // an unknown field of a call
	f.Add([]byte{0x78, 1})                               // and of the request
	f.Add([]byte{0x0a, 3, 0x12, 1, 0xff})                // a method that is not UTF-8
	f.Add([]byte{0x0a, 6, 0x2a, 4, 0x0a, 2, 0xff, 0xff}) // nor metadata
	f.Add([]byte{0x0b, 0x08, 1, 0x0c, 0x0a, 2, 0x0a, 0}) // calls as a group; a call with its id as bytes
	f.Fuzz(func(t *testing.T, data []byte) {
		var got multiplexRequest
		err := got.decode(data)
		want := &sidebusv1.MultiplexRequest{}
		wantErr := proto.Unmarshal(data, want)
		if wantErr != nil {
			if err == nil && got.err == nil && !slices.ContainsFunc(got.calls, hasOddMethod) {
				t.Fatalf("decoded what is %v", wantErr)
			}
			return
		}
		if err != nil {
			t.Fatalf("%v: %v", want, err)
		}
		if got.err != nil {
			if len(want.ProtoReflect().GetUnknown()) == 0 {
				t.Fatalf("%v: refused: %v", want, got.err)
			}
			return
		}
		if !slices.Equal(got.cancelled, want.GetCancelled()) || len(got.calls) != len(want.GetCalls()) {
			t.Fatalf("got %+v, want %v", got, want)
		}
		for i, c := range got.calls {
			w := want.GetCalls()[i]
			if c.id != w.GetId() || c.method != w.GetMethod() || string(c.request) != string(w.GetRequest()) {
				t.Errorf("got %+v, want %v", c, w)
			}
			authorization, has := w.GetMetadata()["authorization"]
			if values := c.metadata["authorization"]; (c.metadata != nil) != (len(w.GetMetadata()) > 0) ||
				(len(values) == 1) != has || has && values[0] != authorization {
				t.Errorf("got metadata %v, want %v", c.metadata, w.GetMetadata())
			}
			if c.err == nil && (len(w.ProtoReflect().GetUnknown()) > 0 || w.GetTimeout() != nil && *c.timeout != w.GetTimeout().AsDuration()) {
				t.Errorf("accepted %v", w)
			}
		}
	})
}

// hasOddMethod reports whether a call names what is not text: it is answered alone, as any RPC that does not exist.
func hasOddMethod(c calledMethod) bool { return !utf8.ValidString(c.method) }
