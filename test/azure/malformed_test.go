package azure

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/test/sidecartest"
)

// Frames of a client that has opened a connection and a session.
var (
	amqpHeader = []byte("AMQP\x00\x01\x00\x00")
	openFrame  = frameOf(0, 0, "\x00\x53\x10\xc0\x04\x01\xa1\x01c")
	beginFrame = frameOf(0, 0, "\x00\x53\x11\xc0\x0a\x04\x40\x43\x70\x00\x00\x00\x64\x52\x64")
)

// frameOf returns a frame with a body.
func frameOf(kind byte, channel uint16, body string) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(8+len(body)))
	b = binary.BigEndian.AppendUint16(append(b, 2, kind), channel)
	return append(b, body...)
}

// TestMalformedInputHarmsNoOther sends what no client sends. Each connection is closed, with an error if it was open,
// and a client that goes on meanwhile notices nothing.
func TestMalformedInputHarmsNoOther(t *testing.T) {
	t.Parallel()
	s := start(t)
	l := open(t, s, queue(t, s, `{}`), nil)
	opened := bytes.Join([][]byte{amqpHeader, openFrame, beginFrame}, nil)
	for name, row := range map[string]struct {
		sent []byte
		want string // in what the sidecar answers
	}{
		"HTTP without a host":  {[]byte("GET / HTTP/1.1\r\n\r\n"), "400 Bad Request"},
		"another protocol":     {[]byte("ALERT\r\n\r\n"), "AMQP"},
		"another version":      {[]byte("AMQP\x00\x02\x00\x00"), "AMQP"},
		"no frame":             {append(bytes.Clone(amqpHeader), "this is not a frame, whatever it says"...), ""},
		"begin before open":    {append(bytes.Clone(amqpHeader), beginFrame...), ""},
		"frame of 4 GiB":       {append(bytes.Clone(opened), "\xff\xff\xff\xff\x02\x00\x00\x00"...), "amqp:decode-error"},
		"frame below its head": {append(bytes.Clone(opened), "\x00\x00\x00\x04\x02\x00\x00\x00"...), "amqp:decode-error"},
		"unknown performative": {append(bytes.Clone(opened), frameOf(0, 0, "\x00\x53\x99\x45")...), "amqp:decode-error"},
		"count of 2 billion": {
			append(bytes.Clone(opened), frameOf(0, 0, "\x00\x53\x12\xd0\x00\x00\x00\x08\x7f\xff\xff\xff\x40\x40\x40\x40")...),
			"amqp:decode-error",
		},
		"nesting":               {append(bytes.Clone(opened), frameOf(0, 0, strings.Repeat("\x00", 1000))...), "amqp:decode-error"},
		"handle that is not":    {append(bytes.Clone(opened), frameOf(0, 0, "\x00\x53\x14\xc0\x04\x02\x52\x07\x43")...), "amqp:session:unattached-handle"},
		"channel that is not":   {append(bytes.Clone(opened), frameOf(0, 9, "\x00\x53\x17\x45")...), "amqp:connection:framing-error"},
		"SASL after its time":   {append(bytes.Clone(opened), frameOf(1, 0, "\x00\x53\x41\xc0\x05\x01\xa3\x02ab")...), "amqp:connection:framing-error"},
		"open twice":            {append(bytes.Clone(opened), openFrame...), "amqp:not-allowed"},
		"session twice":         {append(bytes.Clone(opened), beginFrame...), "amqp:connection:framing-error"},
		"frame that ends early": {append(bytes.Clone(opened), "\x00\x00\x00\x40\x02\x00\x00\x00\x00\x53"...), ""},
	} {
		conn, err := net.Dial("tcp", s.AMQP)
		must(t, err)
		must(t, conn.SetDeadline(time.Now().Add(sidecartest.Patience)))
		_, err = conn.Write(row.sent)
		must(t, err)
		must(t, conn.(*net.TCPConn).CloseWrite())
		answer, err := io.ReadAll(conn)
		if err != nil || !bytes.Contains(answer, []byte(row.want)) {
			t.Errorf("%s: %q, %v, want %s", name, answer, err, row.want)
		}
		_ = conn.Close()
		l.put(t, name)
		m := l.one(t)
		if string(m.Body) != name {
			t.Errorf("%s: another client received %s", name, m.Body)
		}
		must(t, l.receive.CompleteMessage(patient(t), m, nil))
	}
}
