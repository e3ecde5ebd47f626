package frame_test

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/sidebus/sidebus/proxy/amqp/internal/codec"
	"github.com/sidebus/sidebus/proxy/amqp/internal/frame"
)

// TestWhatIsPassedOnOutlivesItsFrame reads performatives whose binaries are used later, and then another frame.
func TestWhatIsPassedOnOutlivesItsFrame(t *testing.T) {
	t.Parallel()
	annotations := codec.Map{codec.Named("a", []byte("binary")), codec.Named("b", codec.List{[]byte("inner")})}
	for _, body := range []frame.Performative{
		&frame.Disposition{State: frame.Modified{Annotations: annotations}},
		&frame.Disposition{State: frame.Transactional{ID: []byte("id"), Outcome: frame.Accepted{}}},
		&frame.Disposition{State: frame.Declared{ID: []byte("id")}},
		&frame.Disposition{State: frame.Rejected{Error: &frame.Error{Condition: "c", Info: annotations}}},
		&frame.Attach{
			Name: "n", Properties: annotations,
			Source: &frame.Source{Address: "a", Filter: codec.Map{codec.Named("f", codec.Described{Descriptor: uint64(1), Value: []byte("x")})}},
		},
	} {
		data := frame.Append(nil, frame.Frame{Body: body})
		both := append(bytes.Clone(data), frame.Append(nil, frame.Frame{
			Body: &frame.Transfer{DeliveryTag: bytes.Repeat([]byte{0xff}, 200)}, Payload: make([]byte, 300),
		})...)
		reader := frame.NewReader(bytes.NewReader(both), 4096)
		alone := frame.NewReader(bytes.NewReader(data), 4096)
		got, err := reader.Next()
		want, errWant := alone.Next()
		if err != nil || errWant != nil {
			t.Fatal(err, errWant)
		}
		before := frame.Append(nil, frame.Frame{Body: got.Body})
		if _, err := reader.Next(); err != nil {
			t.Fatal(err)
		}
		if after := frame.Append(nil, frame.Frame{Body: got.Body}); !bytes.Equal(before, after) || !reflect.DeepEqual(got.Body, want.Body) {
			t.Errorf("%#v changed to %x, was %x", body, after, before)
		}
	}
}
