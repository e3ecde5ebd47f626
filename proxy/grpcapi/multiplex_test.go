package grpcapi

import (
	"maps"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// What is decoded and encoded by hand is what the generated code has.
func TestMultiplexWire(t *testing.T) {
	t.Parallel()
	data, err := proto.Marshal(&sidebusv1.MultiplexRequest{
		Calls: []*sidebusv1.MultiplexRequest_Call{
			{Id: 1, Method: "/a/B", Request: []byte("request")},
			{Id: 1 << 60, Method: "/c/D", Timeout: durationpb.New(time.Minute), Metadata: map[string]string{"k": "v", "l": ""}},
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
	if b.id != 1<<60 || b.method != "/c/D" || *b.timeout != time.Minute || !maps.Equal(b.metadata, map[string]string{"k": "v", "l": ""}) || b.err != nil {
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
