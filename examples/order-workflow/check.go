package main

import (
	"fmt"
	"strings"
)

// check looks at what the steps have changed: each step once, in order, with what the first one found out, and nothing
// left behind.
func check(w world, killed, left int) error {
	for i := range orders {
		done, err := w.done(orderID(i))
		if err != nil {
			return err
		}
		if len(done) != len(steps) {
			return fmt.Errorf("%s: done is %q", orderID(i), done)
		}
		_, reservation, _ := strings.Cut(done[0], " ")
		for i, step := range steps {
			if reservation == "" || done[i] != step+" "+reservation {
				return fmt.Errorf("%s: done is %q", orderID(i), done)
			}
		}
	}
	tries, err := w.done("tries")
	if err != nil {
		return err
	}
	again := 0
	for _, point := range planned() {
		if point == "done" {
			again++
		}
	}
	if killed != kills || left != 0 || len(tries) != orders*len(steps)+again {
		return fmt.Errorf("%d workers were killed, want %d; %d sessions are left, want 0; %d steps were tried, want %d",
			killed, kills, left, len(tries), orders*len(steps)+again)
	}
	fmt.Printf("%d steps were tried twice, because their worker was killed before it stored the state\n", again)
	fmt.Println("every step took effect once and in order, with the reservation of its order; nothing is left")
	return nil
}
