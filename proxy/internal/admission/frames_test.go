package admission

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"pgregory.net/rapid"
)

// However a connection is cut into pieces, padded or mixed with other frames, each message's length is seen once and
// its end is.
func TestFramesAreFollowedHoweverTheyAreCut(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var wire, body bytes.Buffer
		framer := http2.NewFramer(&wire, nil)
		var lengths []int64
		for range rapid.IntRange(1, 5).Draw(t, "messages") {
			n := 1<<rapid.IntRange(0, 16).Draw(t, "magnitude") - 1
			lengths = append(lengths, int64(n))
			body.WriteByte(0)
			_ = binary.Write(&body, binary.BigEndian, uint32(n))
			body.Write(make([]byte, n))
		}
		for body.Len() > 0 {
			piece := body.Next(1 << rapid.IntRange(0, 14).Draw(t, "frame"))
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				_ = framer.WritePing(false, [8]byte{0, 0, 0, 0, 9})
				fallthrough
			case 1:
				_ = framer.WriteData(1, false, piece)
			default:
				_ = framer.WriteDataPadded(1, false, piece, make([]byte, rapid.IntRange(0, 255).Draw(t, "padding")))
			}
		}
		var f frameParser
		var m messageParser
		var got []int64
		for p := wire.Bytes(); len(p) > 0; {
			n := min(len(p), 1<<rapid.IntRange(0, 15).Draw(t, "read"))
			data := func(piece []byte) {
				if f.kind == frameData {
					m.parse(piece, func(length int64) { got = append(got, length) })
				}
			}
			if _, ok := f.parse(p[:n], func() {}, data, func() bool { return false }); !ok {
				t.Fatal("lost")
			}
			p = p[n:]
		}
		if !slices.Equal(got, lengths) || m.complete != len(lengths) || !f.isBetween() {
			t.Fatalf("got %v, %d whole; want %v", got, m.complete, lengths)
		}
	})
}

// The response that the listener writes itself is one that clients can read.
func TestTheAnswerOfTheDoorCanBeRead(t *testing.T) {
	t.Parallel()
	wire := encodeFrame(frameHeaders, flagEndStream|flagEndHeaders, 7, memoryErrorHeaders())
	wire = append(append(wire, encodeReset(7, noError)...), encodeGoAway(7)...)
	framer := http2.NewFramer(nil, bytes.NewReader(wire))
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	first, err := framer.ReadFrame()
	if err != nil {
		t.Fatal(err)
	}
	heads := first.(*http2.MetaHeadersFrame)
	if heads.StreamID != 7 || !heads.StreamEnded() || heads.PseudoValue("status") != "200" || len(heads.Fields) != 5 {
		t.Errorf("got %v", heads)
	}
	for _, want := range []http2.FrameType{http2.FrameRSTStream, http2.FrameGoAway} {
		if f, err := framer.ReadFrame(); err != nil || f.Header().Type != want {
			t.Errorf("got %v, %v, want %v", f, err, want)
		}
	}
}
