package client

import (
	"bytes"
	"testing"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// An answer is the same in whatever frames it comes, and stays so when the next one is decoded.
func TestCodecJoinsFrames(t *testing.T) {
	t.Parallel()
	c := newCodec()
	var all []*sidebusv1.ReceivedMessage
	for frames := range 5 { // none is an empty answer
		data, err := proto.Marshal(&sidebusv1.ReceivedMessage{
			MessageId: proto.String("m"), Content: &sidebusv1.ReceivedMessage_Body{Body: bytes.Repeat([]byte{byte(frames)}, 1000)},
		})
		if err != nil {
			t.Fatal(err)
		}
		var came mem.BufferSlice
		for ; frames > 0; frames-- {
			n := len(data) / frames
			came, data = append(came, mem.SliceBuffer(data[:n])), data[n:]
		}
		m := &sidebusv1.ReceivedMessage{}
		if err := c.Unmarshal(came, m); err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	for frames, m := range all[1:] {
		if !bytes.Equal(m.GetBody(), bytes.Repeat([]byte{byte(frames + 1)}, 1000)) || m.GetMessageId() != "m" {
			t.Errorf("in %d frames: got %v", frames+1, m)
		}
	}
	if err := c.Unmarshal(mem.BufferSlice{mem.SliceBuffer{0x0a}, mem.SliceBuffer{5}}, &sidebusv1.ReceivedMessage{}); err == nil {
		t.Error("a part of a message was decoded")
	}
}
