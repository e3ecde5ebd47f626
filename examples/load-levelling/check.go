package main

import (
	"context"
	"fmt"
	"slices"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// check holds what came of it against what was promised.
func (s *story) check(ctx context.Context) error {
	select {
	case err := <-s.book.failed:
		return err
	default:
	}
	for _, p := range s.book.phases {
		if slowest := slices.Max(p.took); slowest >= deadline/2 {
			return fmt.Errorf("%s: the website waited for %s to send an order", p.name, slowest)
		}
	}
	if err := s.checkOutcomes(); err != nil {
		return err
	}
	dead := s.book.count(nil, human)
	if err := s.checkQueues(ctx, dead); err != nil {
		return err
	}
	onPage, byMail := s.book.count(nil, confirmed), s.book.count(nil, mailed)
	if sent := len(s.book.of); onPage+byMail+dead != sent {
		return fmt.Errorf(
			"%d orders were sent, %d confirmed, %d answered by mail, %d are dead letters", sent, onPage, byMail, dead,
		)
	}
	fmt.Printf(
		"\n%d orders: %d confirmed, %d by mail, %d are dead letters for a human; none is lost, none has two outcomes\n",
		len(s.book.of), onPage, byMail, dead,
	)
	return nil
}

// checkOutcomes looks whether what should happen in a phase did, else the rest proves nothing.
func (s *story) checkOutcomes() error {
	calm, burst, paymentsFail, closed := s.book.phases[0], s.book.phases[1], s.book.phases[2], s.book.phases[3]
	for what, holds := range map[string]bool{
		"calm: all in time but those for coffee": calm.outcomes[human] == len(calm.ids)/10 &&
			calm.outcomes[mailed] == 0,
		"burst: some in time, some by mail": burst.outcomes[confirmed] > 0 && burst.outcomes[mailed] > 0,
		"payments fail: they became dead letters": s.book.reasons[tooOften] > 0 &&
			paymentsFail.outcomes[confirmed] > 0,
		"back end closed: some in time, some not":       closed.outcomes[confirmed] > 0 && closed.outcomes[mailed] > 0,
		"expired: each told to its user, and then done": len(s.book.told) == s.book.count(nil, mailed),
	} {
		if !holds {
			return fmt.Errorf("this did not happen: %s", what)
		}
	}
	return nil
}

// checkQueues looks whether anything is left but the dead letters for a human.
func (s *story) checkQueues(ctx context.Context, dead int) error {
	for name, want := range map[string]int{orders: dead, ordersByMail: 0, confirmations: 0, mails: 0} {
		runtime, err := s.admin.GetQueueRuntime(ctx, &sidebusv1.GetQueueRuntimeRequest{Name: "queues/" + name})
		if err != nil {
			return err
		}
		total, letters := runtime.GetTotalMessageCount(), runtime.GetDeadLetterMessageCount()
		if total != int64(want) || letters != total {
			return fmt.Errorf(
				"%s holds %d messages, %d of them dead letters; want %d dead letters alone", name, total, letters, want,
			)
		}
	}
	return nil
}
