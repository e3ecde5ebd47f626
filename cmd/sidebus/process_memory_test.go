package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec that is wrapped here
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// mostResident is far from the 2,250 MB that eight messages of 100 MB took, and leaves room for a collector that is
// late.
const mostResident = 700 << 20

// Eight messages of 100 MB at once, which the queue does not take: what has no memory is refused before it is read.
func TestTHR_2_EightLargeMessagesAtOnce(t *testing.T) {
	t.Parallel()
	s := sidecartest.Start(t, "--store", "memory", "--request-memory", "256MiB")
	s.Queue(t, "q", `{}`)
	encoded, err := proto.Marshal(&sidebusv1.SendRequest{
		Target: "queues/q", Messages: []*sidebusv1.Message{{Content: &sidebusv1.Message_Body{Body: make([]byte, 100_000_000)}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var sending sync.WaitGroup
	var throttled, tooLarge atomic.Int32
	for range 8 {
		conn, err := grpc.NewClient(s.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		sending.Go(func() {
			_, err := sidebusv1.NewMessagesClient(conn).Send(t.Context(), &sidebusv1.SendRequest{}, grpc.ForceCodecV2(encodedOnce{encoding.GetCodecV2("proto"), encoded}))
			switch status.Code(err) { //nolint:exhaustive // no others are wanted
			case codes.ResourceExhausted:
				throttled.Add(1)
			case codes.InvalidArgument:
				tooLarge.Add(1)
			default:
				t.Errorf("got %v", err)
			}
		})
	}
	sending.Wait()
	peak := peakMemory(t, s.PID())
	t.Logf("%d were THROTTLED, %d MESSAGE_SIZE_EXCEEDED; at most %d MB were resident", throttled.Load(), tooLarge.Load(), peak>>20)
	if throttled.Load() == 0 || tooLarge.Load() == 0 {
		t.Errorf("%d were THROTTLED and %d too large, want some of both", throttled.Load(), tooLarge.Load())
	}
	if peak > memoryFactor*mostResident {
		t.Errorf("%d MB were resident", peak>>20)
	}
	s.Send(t, "q", "it goes on")
}

// encodedOnce gives the same message for every request, so that this process need not hold eight.
type encodedOnce struct {
	encoding.CodecV2
	message []byte
}

func (e encodedOnce) Marshal(any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(e.message)}, nil
}

// peakMemory gives the most bytes of a process that ever were resident.
func peakMemory(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if size, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(size), " kB"), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n << 10
		}
	}
	t.Fatal("no VmHWM")
	return 0
}

// mostAnswering is what a message of 95 MB takes to be sent, 3 times that to be answered, and room for a collector that
// is late. Twelve unread answers took 1,900 MB.
const mostAnswering = 1000 << 20

// Twelve peeks of a message of 95 MB at once by a client that reads none: one is answered and waits, the others are
// THROTTLED.
func TestTHR_2_TwelveLargePeeksByAClientThatDoesNotRead(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("moves a gigabyte, which takes minutes under the race detector")
	}
	server := redistest.Start(t) // neighbours on the shared one would wait
	t.Cleanup(server.Stop)
	s := sidecartest.Start(t, "--store", server.URL, "--request-memory", "256MiB",
		"--redis-read-timeout", redistest.Patience.String(), "--redis-write-timeout", redistest.Patience.String())
	s.Queue(t, "q", `{"maxMessageSizeInKilobytes":102400}`)
	conn, err := grpc.NewClient(s.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	messages := sidebusv1.NewMessagesClient(conn)
	if _, err := messages.Send(t.Context(), &sidebusv1.SendRequest{
		Target: "queues/q", Messages: []*sidebusv1.Message{{Content: &sidebusv1.Message_Body{Body: make([]byte, 95_000_000)}}},
	}); err != nil {
		t.Fatal(err)
	}
	before := peakMemory(t, s.PID())
	throttled := make(chan error, 12)
	for range cap(throttled) {
		stream, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true}, sidebusv1.Messages_Peek_FullMethodName)
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.SendMsg(&sidebusv1.PeekRequest{Source: "queues/q"}); err != nil {
			t.Fatal(err)
		}
		if err := stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
		go func() { // only what ends without an answer is ever read: its headers come with its end
			if header, err := stream.Header(); err == nil && len(header) == 0 {
				throttled <- stream.RecvMsg(&sidebusv1.PeekResponse{})
			}
		}()
	}
	for range cap(throttled) - 1 {
		if err := <-throttled; status.Code(err) != codes.ResourceExhausted {
			t.Errorf("got %v", err)
		}
	}
	peak := peakMemory(t, s.PID())
	t.Logf("%d MB were resident before, %d MB at most", before>>20, peak>>20)
	if peak > memoryFactor*mostAnswering {
		t.Errorf("%d MB were resident", peak>>20)
	}
	s.Send(t, "q", "it goes on")
}
