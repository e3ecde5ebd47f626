package engine

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/sidebus/sidebus/proxy/amqp/internal/frame"
)

// mechanisms are those of Service Bus, in its order.
var mechanisms = []string{"MSSBCBS", "PLAIN", "ANONYMOUS", "EXTERNAL"}

// ErrTLS is what the connection of a client ends with that begins with TLS where none is served.
var ErrTLS = errors.New("the client begins with TLS, and none is served here")

// tlsHandshake is the first byte of a client that begins with TLS.
const tlsHandshake = 0x16

// maxSASLFrame is the largest frame of a client that authenticates: the specification allows no more.
const maxSASLFrame = 512

// Outcomes of SASL.
const (
	saslDone    = 0
	saslRefused = 1
)

// handshake exchanges the protocol headers and authenticates the client. Each answer follows what it answers: some
// clients do not read what comes before they have asked.
func (c *Conn) handshake(reader io.Reader) error {
	header, err := readHeader(reader)
	if err != nil {
		return err
	}
	if header == frame.SASLHeader {
		if err := c.reply(frame.SASLHeader[:]); err != nil {
			return err
		}
		if err := c.sasl(reader); err != nil {
			return err
		}
		if header, err = readHeader(reader); err != nil {
			return err
		}
	} else if header == frame.AMQPHeader {
		err = c.config.Authenticate(Login{})
	}
	switch {
	case err != nil || header == frame.AMQPHeader:
	case header[0] == tlsHandshake:
		err = ErrTLS
	default:
		err = fmt.Errorf("the client begins with %q", header[:])
	}
	if err != nil {
		_ = c.reply(frame.SASLHeader[:]) // what this side speaks; the connection ends here
		return err
	}
	return c.reply(frame.AMQPHeader[:])
}

func readHeader(reader io.Reader) (header frame.Header, err error) {
	_, err = io.ReadFull(reader, header[:])
	return header, err
}

func (c *Conn) reply(b []byte) error {
	_, err := c.net.Write(b)
	return err
}

// sasl authenticates the client.
func (c *Conn) sasl(reader io.Reader) error {
	if err := c.saslReply(&frame.Mechanisms{Names: mechanisms}); err != nil {
		return err
	}
	f, err := frame.NewReader(reader, maxSASLFrame).Next()
	if err != nil {
		return err
	}
	init, ok := f.Body.(*frame.Init)
	if !ok {
		return fmt.Errorf("the client does not begin with sasl-init")
	}
	login := Login{Mechanism: init.Mechanism}
	switch init.Mechanism {
	case "MSSBCBS", "ANONYMOUS", "EXTERNAL":
	case "PLAIN":
		parts := bytes.Split(init.Response, []byte{0})
		if len(parts) != 3 {
			err = fmt.Errorf("the response to PLAIN is malformed")
			break
		}
		login.User, login.Password = string(parts[1]), string(parts[2])
	default:
		err = fmt.Errorf("the client wants the mechanism %q", init.Mechanism)
	}
	if err == nil {
		err = c.config.Authenticate(login)
	}
	if err != nil {
		_ = c.saslReply(&frame.Outcome{Code: saslRefused})
		return err
	}
	return c.saslReply(&frame.Outcome{Code: saslDone, Data: []byte("Welcome!")})
}

func (c *Conn) saslReply(body frame.Performative) error {
	return c.reply(frame.Append(nil, frame.Frame{Type: frame.SASL, Body: body}))
}
