package grpcapi

import (
	"bytes"
	"testing"

	"github.com/sidebus/sidebus/semantics"
)

// A request of far too many messages is refused without memory for each of them, however small they are.
func TestBATCH_2_TooManyMessagesAreNotDecoded(t *testing.T) {
	t.Parallel()
	for count, want := range map[int]int{semantics.MaxBatchMessages: semantics.MaxBatchMessages, semantics.MaxBatchMessages + 1: 0, 1 << 20: 0} {
		in := newSendRequest()
		if err := in.decode(bytes.Repeat([]byte{0x12, 0x00}, count)); err != nil {
			t.Fatal(err)
		}
		if len(in.messages) != want {
			t.Errorf("of %d messages %d were decoded, want %d", count, len(in.messages), want)
		}
		if _, err := in.checked(); (semantics.CodeOf(err) == semantics.ArgumentOutOfRange) != (want == 0) {
			t.Errorf("%d messages: %v", count, err)
		}
	}
}
