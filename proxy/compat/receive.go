package compat

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/sidebus/sidebus/proxy/internal/brokerproperties"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/proxy/internal/response"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// How long a client may take to read a response: until writeMargin before the lock expires, so that the message can
// still be released uncounted, but at least minWriteTime. In ReceiveAndDelete mode the end of the lock is unknown.
const (
	writeMargin  = time.Second
	minWriteTime = time.Second
	writeTimeout = 30 * time.Second
)

// receive receives one message (REST-4, REST-5).
func (x *exchange) receive(source semantics.Source, mode semantics.Mode) error {
	timeout, err := x.timeout()
	if err != nil {
		return err
	}
	ctx := x.request.Context()
	delivery, err := x.Broker.Receive(ctx, source, broker.ReceiveOptions{MaxMessages: 1, MaxWait: timeout, Mode: mode})
	if err != nil {
		return err
	}
	response.SetDelivery(ctx, delivery, mode)
	if err := ctx.Err(); err != nil {
		return err // the client disconnected during the receive
	}
	if len(delivery.Messages) == 0 {
		x.WriteHeader(http.StatusNoContent)
		return nil
	}
	m := delivery.Messages[0]
	x.Metrics.Received(ctx, source, delivery.Messages)
	status, timeout := http.StatusOK, writeTimeout
	if mode == semantics.PeekLock {
		status, timeout = http.StatusCreated, max(time.Until(m.LockedUntil)-writeMargin, minWriteTime)
		x.locks.add(m)
		x.Header().Set("Location", x.location(m))
	}
	brokerproperties.Write(x.Header(), m)
	x.Header().Set("Content-Length", strconv.Itoa(len(m.Body)))
	x.limitWriteTime(timeout)
	x.WriteHeader(status)
	_, _ = x.Write(m.Body) // the flush reports whether it was written
	return nil
}

// limitWriteTime sets a deadline for writing the response.
func (x *exchange) limitWriteTime(timeout time.Duration) {
	controller := http.NewResponseController(x.ResponseWriter)
	if controller.SetWriteDeadline(time.Now().Add(timeout)) == nil {
		x.written = func() { _ = controller.SetWriteDeadline(time.Time{}) } // fails only if the connection is closed
	}
}

// location returns the URL of a lock. It contains the sequence number, which needs no escaping.
func (x *exchange) location(m *semantics.Received) string {
	path := "/" + x.route.entity + "/messages/" + strconv.FormatInt(m.SequenceNumber, 10) + "/" + m.LockToken.String()
	address := url.URL{Path: path}
	if x.request.Host != "" {
		address.Scheme, address.Host = "http", x.request.Host
	}
	return address.String()
}

// lock returns the token in the path, after checking that it belongs to the message in the path.
func (x *exchange) lock(source semantics.Source) ([]semantics.LockToken, error) {
	token, malformed := semantics.ParseLockToken(x.route.token)
	err := x.checkID(x.request.Context(), source, x.route.id, token)
	if err == nil && malformed != nil { // no lock has such a token
		err = lockLost(source, semantics.MessageLockLost)
	}
	return []semantics.LockToken{token}, err
}

func lockLost(source semantics.Source, code semantics.Code) error {
	return semantics.Errorf(code, "the lock has expired or was lost; receive the message again").
		With(semantics.DetailEntity, source.String())
}

// settle settles a message by its lock (REST-6).
func (x *exchange) settle(source semantics.Source, name string, verb semantics.Settlement) error {
	tokens, err := x.lock(source)
	if err != nil {
		return err
	}
	codes, err := verb(x.request.Context(), source, tokens)
	if err != nil {
		return err
	}
	x.Metrics.Settled(x.request.Context(), obs.Settlement{Source: source, Verb: name, Tokens: tokens}, codes)
	x.locks.remove(tokens[0])
	return x.done(source, codes[0])
}

func (x *exchange) abandon(
	ctx context.Context, source semantics.Source, tokens []semantics.LockToken,
) ([]semantics.Code, error) {
	return x.Broker.Abandon(ctx, source, tokens, semantics.AbandonOptions{})
}

// renew renews a lock and returns its new end (REST-6).
func (x *exchange) renew(source semantics.Source) error {
	tokens, err := x.lock(source)
	if err != nil {
		return err
	}
	renewals, err := x.Broker.RenewLocks(x.request.Context(), source, tokens)
	if err != nil {
		return err
	}
	if renewals[0].Code != "" {
		x.Metrics.LockLost(source, obs.Renew)
		x.locks.remove(tokens[0])
		return x.done(source, renewals[0].Code)
	}
	x.locks.renew(tokens[0], renewals[0].LockedUntil)
	brokerproperties.Renewed(x.Header(), renewals[0].LockedUntil)
	return x.done(source, "")
}

// done answers a call on a lock.
func (x *exchange) done(source semantics.Source, code semantics.Code) error {
	switch code {
	case "":
	case semantics.DurabilityNotMet:
		return semantics.Errorf(code, "the message is settled, but its durability is not confirmed").
			With(semantics.DetailEntity, source.String()).With(semantics.DetailOutcome, semantics.OutcomeStored)
	default:
		return lockLost(source, code)
	}
	x.Header().Set("Content-Length", "0")
	x.WriteHeader(http.StatusOK)
	return nil
}
