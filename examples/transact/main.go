// Command transact keeps balances of accounts: workers complete a payment, store the balance and send a receipt in one
// transaction, and crash on purpose. See README.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"

	"github.com/sidebus/sidebus/proto/client"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

const (
	payments, receipts = "payments", "receipts"

	accounts, each, workers = 20, 20, 8
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := do(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "transact:", err)
		os.Exit(1)
	}
}

func do(ctx context.Context) error {
	sidebus, err := client.New(os.Getenv("GRPC"), nil)
	if err != nil {
		return err
	}
	defer sidebus.Close() //nolint:errcheck // the process ends
	for name, sessions := range map[string]bool{payments: true, receipts: false} {
		_, err := sidebus.Admin().EnsureQueue(ctx, &sidebusv1.EnsureQueueRequest{
			Name: "queues/" + name, Queue: &sidebusv1.Queue{RequiresSession: &sessions, MaxDeliveryCount: new(int32(100))},
		})
		if err != nil {
			return err
		}
	}
	if err := pay(ctx, sidebus); err != nil {
		return fmt.Errorf("pay: %w", err)
	}
	fmt.Printf("%d payments to %d accounts, %d workers\n", accounts*each, accounts, workers)

	working, stop := context.WithCancel(ctx)
	var crew sync.WaitGroup
	failures := make(chan error, workers)
	var accidents accidents
	for range workers {
		crew.Go(func() {
			if err := (&worker{sidebus: sidebus, accidents: &accidents}).work(working); err != nil {
				failures <- err
				stop()
			}
		})
	}
	err = checkReceipts(working, sidebus)
	stop()
	crew.Wait()
	close(failures)
	for failure := range failures {
		err = errors.Join(err, failure)
	}
	if err != nil {
		return err
	}
	fmt.Printf(
		"workers crashed %d times before the transaction, and repeated %d transactions\n", accidents.crashes.Load(),
		accidents.repeats.Load(),
	)
	fmt.Printf("%d receipts, each once and in the order of its account\n", accounts*each)
	return checkBalances(ctx, sidebus)
}

func account(i int) string { return fmt.Sprintf("account-%02d", i) }

// amount is that of the payments of an account, by number.
func amount(i, number int) int { return i + number*number }

// pay sends the payments of all accounts.
func pay(ctx context.Context, sidebus *client.Client) error {
	sender, err := sidebus.NewSender(payments, nil)
	if err != nil {
		return err
	}
	for i := range accounts {
		var batch []*client.Message
		for number := range each {
			batch = append(batch, &client.Message{
				Body: []byte(strconv.Itoa(amount(i, number))), SessionID: new(account(i)),
			})
		}
		if _, err := sender.SendMessages(ctx, batch, nil); err != nil {
			return err
		}
	}
	return nil
}

// checkReceipts receives as many receipts as there are payments. Each must have the next balance of its account.
func checkReceipts(ctx context.Context, sidebus *client.Client) error {
	receiver, err := sidebus.NewReceiverForQueue(receipts, nil)
	if err != nil {
		return err
	}
	numbers, balances := map[string]int{}, map[string]int{}
	for left := accounts * each; left > 0; {
		messages, err := receiver.ReceiveMessages(ctx, left, nil)
		if err != nil {
			return fmt.Errorf("%d receipts are missing: %w", left, err)
		}
		for _, m := range messages {
			var i int
			if _, err := fmt.Sscanf(*m.CorrelationID, "account-%d", &i); err != nil {
				return err
			}
			name := account(i)
			balances[name] += amount(i, numbers[name])
			numbers[name]++
			if got := string(m.Body); got != strconv.Itoa(balances[name]) {
				return fmt.Errorf("receipt %d of %s has the balance %s, want %d", numbers[name], name, got, balances[name])
			}
			if err := receiver.CompleteMessage(ctx, m, nil); err != nil {
				return err
			}
			left--
		}
	}
	return nil
}

// checkBalances compares the states of the sessions with what was paid, and looks for receipts that are too many.
func checkBalances(ctx context.Context, sidebus *client.Client) error {
	for i := range accounts {
		session, err := sidebus.AcceptSessionForQueue(ctx, payments, account(i), nil)
		if err != nil {
			return err
		}
		state, err := session.GetSessionState(ctx, nil)
		if err = errors.Join(err, session.Close(ctx)); err != nil {
			return err
		}
		want := 0
		for number := range each {
			want += amount(i, number)
		}
		if string(state) != strconv.Itoa(want) {
			return fmt.Errorf("the balance of %s is %s, want %d", account(i), state, want)
		}
	}
	receiver, err := sidebus.NewReceiverForQueue(receipts, nil)
	if err != nil {
		return err
	}
	more, err := receiver.PeekMessages(ctx, 1, nil)
	if err == nil && len(more) > 0 {
		err = errors.New("there are more receipts than payments")
	}
	if err == nil {
		fmt.Printf("%d balances are right\n", accounts)
	}
	return err
}
