package admission

import "encoding/binary"

// Of HTTP/2 (RFC 9113) only frame headers matter here: which streams begin and end, and the lengths of their messages.
const (
	preface         = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	frameHeaderSize = 9
	frameData       = 0x0
	frameHeaders    = 0x1
	frameReset      = 0x3
	frameGoAway     = 0x7
	flagEndStream   = 0x1 // END_STREAM
	flagEndHeaders  = 0x4 // END_HEADERS
	flagPadded      = 0x8
)

// frameParser parses the frames of one direction of a connection.
type frameParser struct {
	header [frameHeaderSize]byte
	read   int // bytes of the header
	left   int // bytes of the payload
	pad    int // of those, padding at the end; negative: the padding length comes next
	kind   byte
	flags  byte
	stream uint32
}

// parse calls begin after each frame header, data for each piece of payload without padding, and end after each frame.
// It stops when end returns true, and returns the unparsed rest. It reports false for malformed frames.
func (f *frameParser) parse(
	p []byte, begin func(), data func(piece []byte), end func() (stop bool),
) (rest []byte, ok bool) {
	for len(p) > 0 {
		switch {
		case f.left == 0:
			n := copy(f.header[f.read:], p)
			f.read, p = f.read+n, p[n:]
			if f.read < frameHeaderSize {
				return nil, true
			}
			f.start()
			begin()
		case f.pad < 0:
			f.pad, f.left, p = int(p[0]), f.left-1, p[1:]
			if f.pad > f.left {
				return nil, false
			}
		default:
			n := min(f.left, len(p))
			if body := min(n, f.left-f.pad); body > 0 {
				data(p[:body])
			}
			f.left, p = f.left-n, p[n:]
		}
		if f.isBetween() && end() {
			return p, true
		}
	}
	return nil, true
}

func (f *frameParser) start() {
	f.read = 0
	f.left = int(f.header[0])<<16 | int(f.header[1])<<8 | int(f.header[2])
	f.kind, f.flags = f.header[3], f.header[4]
	f.stream = binary.BigEndian.Uint32(f.header[5:]) &^ (1 << 31)
	f.pad = 0
	if f.kind == frameData && f.flags&flagPadded != 0 && f.left > 0 {
		f.pad = -1
	}
}

// isBetween reports whether the last frame is complete.
func (f *frameParser) isBetween() bool { return f.read == 0 && f.left == 0 }

// encodeFrame returns an encoded frame.
func encodeFrame(kind, flags byte, stream uint32, payload []byte) []byte {
	size := len(payload)
	head := []byte{byte(size >> 16), byte(size >> 8), byte(size), kind, flags} //nolint:gosec // a few hundred bytes
	return append(binary.BigEndian.AppendUint32(head, stream), payload...)
}

// encodeGoAway returns a GOAWAY frame. The client may retry streams above last elsewhere: they were not processed.
func encodeGoAway(last uint32) []byte {
	payload := binary.BigEndian.AppendUint32(nil, last)
	return encodeFrame(frameGoAway, 0, 0, binary.BigEndian.AppendUint32(payload, noError))
}

// encodeReset returns a RST_STREAM frame.
func encodeReset(stream, code uint32) []byte {
	return encodeFrame(frameReset, 0, stream, binary.BigEndian.AppendUint32(nil, code))
}

// Error codes of HTTP/2.
const (
	noError = 0x0
	cancel  = 0x8
)

// encodeField returns a header field as an HPACK literal without indexing.
func encodeField(name, value string) []byte {
	text := func(to []byte, s string) []byte {
		const most = 127 // longer lengths continue in further bytes
		n := len(s)
		if n < most {
			return append(append(to, byte(n)), s...)
		}
		to = append(to, most)
		return append(binary.AppendUvarint(to, uint64(n-most)), s...) //nolint:gosec // not negative
	}
	return text(text([]byte{0}, name), value)
}

// prefixSize is the size of the prefix of a gRPC message: the compression flag and the length.
const prefixSize = 5

// messageParser parses the gRPC messages on a stream.
type messageParser struct {
	prefix   [prefixSize]byte
	read     int   // bytes of the prefix
	left     int64 // bytes of the message
	complete int   // messages that have fully arrived
}

// isBetween reports whether the last message is complete.
func (m *messageParser) isBetween() bool { return m.read == 0 && m.left == 0 }

// parse calls begin with the length of each message.
func (m *messageParser) parse(p []byte, begin func(length int64)) {
	for len(p) > 0 {
		if m.left > 0 {
			n := min(m.left, int64(len(p)))
			m.left, p = m.left-n, p[n:]
		} else {
			n := copy(m.prefix[m.read:], p)
			m.read, p = m.read+n, p[n:]
			if m.read < prefixSize {
				return
			}
			m.read, m.left = 0, int64(binary.BigEndian.Uint32(m.prefix[1:]))
			begin(m.left)
		}
		if m.left == 0 {
			m.complete++
		}
	}
}
