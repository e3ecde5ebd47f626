package main

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// world is what the steps change: the warehouse, the bank, the carrier. Here it is a folder with a file for each order,
// which has a line for each thing that was done. As such systems should, it knows a thing by a key, the order and the
// step, and does it once: a repeated request gets the first result. No broker can do that for them.
type world string

// change does a step and returns what came of it.
func (w world) change(order, step, reservation string) (string, error) {
	if err := w.write("tries", order+" "+step); err != nil {
		return "", err
	}
	done, err := w.done(order)
	if err != nil {
		return "", err
	}
	for _, line := range done {
		if before, isDone := strings.CutPrefix(line, step+" "); isDone {
			return before, nil
		}
	}
	if step == "reserve" {
		reservation = rand.Text()[:8]
	}
	return reservation, w.write(order, step+" "+reservation)
}

// done returns the lines of an order.
func (w world) done(order string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(string(w), order))
	if os.IsNotExist(err) {
		return nil, nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"), err
}

func (w world) write(name, line string) error {
	file, err := os.OpenFile(filepath.Join(string(w), name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // every write was checked
	_, err = fmt.Fprintln(file, line)
	return err
}
