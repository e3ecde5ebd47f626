package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// story is the shop and what happens in it.
type story struct {
	website *website
	backend *backend
	book    *book
	admin   sidebusv1.AdminClient
	shift   *shift
}

// run opens the shop, lets happen what happens in a shop, and looks at what became of each order.
func run(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, bound, fmt.Errorf("not done within %s", bound))
	defer cancel()
	sidebus, err := connect()
	if err != nil {
		return err
	}
	defer sidebus.Close() //nolint:errcheck // the process ends
	s := &story{book: newBook(), backend: &backend{}, admin: sidebus.Admin()}
	s.website = &website{sidebus: sidebus, book: s.book}
	if err := s.makeQueues(ctx); err != nil {
		return err
	}
	stop := s.staff(ctx)
	err = s.tell(ctx)
	if failed := stop(); err == nil {
		err = failed
	}
	if err != nil {
		return err
	}
	s.book.report()
	return s.check(ctx)
}

func (s *story) makeQueues(ctx context.Context) error {
	yes, tries := true, int32(3)
	for name, queue := range map[string]*sidebusv1.Queue{
		orders: {
			DeadLetteringOnMessageExpiration: &yes, // else what expires is gone without a trace
			MaxDeliveryCount:                 &tries,
			RedeliveryDelay:                  durationpb.New(100 * time.Millisecond),
		},
		ordersByMail: {
			RequiresDuplicateDetection: &yes, // the watch may send an order twice
			RedeliveryDelay:            durationpb.New(500 * time.Millisecond),
		},
		confirmations: {},
		mails:         {},
	} {
		if _, err := s.admin.EnsureQueue(ctx,
			&sidebusv1.EnsureQueueRequest{Name: "queues/" + name, Queue: queue}); err != nil {
			return fmt.Errorf("ensure %s: %w", name, err)
		}
	}
	return nil
}

// staff starts all parts of the shop but the website, which is used directly, and returns what ends them.
func (s *story) staff(ctx context.Context) (stop func() error) {
	ctx, dismiss := context.WithCancel(ctx)
	s.shift = s.backend.open(ctx, orders)
	parts := []func() error{
		func() error { return s.backend.run(ctx, ordersByMail) },
		func() error { return (&watch{backend: s.backend, book: s.book}).run(ctx) },
		func() error { return listen(ctx, confirmations, s.book, confirmed) },
		func() error { return listen(ctx, mails, s.book, mailed) },
	}
	var staff sync.WaitGroup
	ended := make([]error, len(parts))
	for i, part := range parts {
		staff.Go(func() {
			if ended[i] = part(); ended[i] != nil {
				s.book.fail(ended[i])
			}
		})
	}
	return func() error {
		dismiss()
		staff.Wait()
		return errors.Join(append(ended, s.shift.close())...)
	}
}

// tell is the story.
func (s *story) tell(ctx context.Context) error {
	for _, part := range []func(context.Context) error{s.calm, s.burst, s.paymentsFail, s.closed} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// calm is everyday: all is done in time, but that some want coffee.
func (s *story) calm(ctx context.Context) error {
	p := s.book.begin("calm", 40)
	if err := s.website.trickle(ctx, p, 25*time.Millisecond, true); err != nil {
		return err
	}
	return s.book.await(ctx, p)
}

// burst is more at once than the back end can do in time.
func (s *story) burst(ctx context.Context) error {
	p := s.book.begin("burst", 500)
	began := time.Now()
	if err := s.website.burst(ctx, p, 20); err != nil {
		return err
	}
	took, done := time.Since(began), s.book.count(p, confirmed)
	fmt.Printf(
		"a burst: %d orders were accepted in %.2f s; %d of them were processed by then\n", len(p.ids), took.Seconds(),
		done,
	)
	err := s.book.await(ctx, p)
	fmt.Printf(
		"after %.1f s all were processed, %d of them by mail\n\n", time.Since(began).Seconds(), s.book.count(p, mailed),
	)
	return err
}

// paymentsFail is when orders fail through no fault of theirs.
func (s *story) paymentsFail(ctx context.Context) error {
	s.backend.paymentsFail.Store(true)
	p := s.book.begin("payments fail", 20)
	if err := s.website.trickle(ctx, p, 25*time.Millisecond, false); err != nil {
		return err
	}
	s.awaitFailures(ctx, len(p.ids))
	s.backend.paymentsFail.Store(false)
	return s.book.await(ctx, p)
}

// awaitFailures waits until the watch saw so many orders that failed every time, but not for those that expired before.
func (s *story) awaitFailures(ctx context.Context, count int) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for s.book.times(tooOften) < count {
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}

// closed is when the back end is not there at all, for longer than orders may wait.
func (s *story) closed(ctx context.Context) error {
	if err := s.shift.close(); err != nil {
		return err
	}
	p := s.book.begin("back end closed", 60)
	err := s.website.trickle(ctx, p, 3*deadline/2/time.Duration(len(p.ids)), false)
	s.shift = s.backend.open(ctx, orders)
	if err != nil {
		return err
	}
	return s.book.await(ctx, p)
}
