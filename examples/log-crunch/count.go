package main

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// record is how often each line was processed, and by whom.
type record struct {
	times     []int  // by line
	byVictim  []bool // by line
	consumer  [consumers]int
	delivered int // lines that came with a delivery count above 1
}

// count compares the outputs with the file, line by line. A line that is missing, changed or unknown is an error, and
// so is a duplicate that the kill does not explain.
func count(lines [][]byte, outputs []string) error {
	r := &record{times: make([]int, len(lines)), byVictim: make([]bool, len(lines))}
	for consumer, output := range outputs {
		if err := r.read(lines, consumer, output); err != nil {
			return fmt.Errorf("%s: %w", output, err)
		}
	}
	lost, doubled, unexplained := 0, 0, 0
	for i, times := range r.times {
		switch {
		case times == 0:
			lost++
		case times > 1:
			doubled++
			if times > 2 || !r.byVictim[i] {
				unexplained++
			}
		}
	}
	fmt.Printf("lines: %d, processed by consumer: %v, lost: %d\n", len(lines), r.consumer, lost)
	fmt.Printf(
		"delivered again after the kill: %d, of these processed twice: %d (at most %d were locked)\n", r.delivered,
		doubled, handful,
	)
	switch {
	case lost > 0:
		return fmt.Errorf("%d lines were lost", lost)
	case unexplained > 0 || doubled > handful:
		return fmt.Errorf("%d lines were processed twice, %d of them without the killed consumer", doubled, unexplained)
	}
	fmt.Println("every line was processed; no line is left")
	return nil
}

func (r *record) read(lines [][]byte, consumer int, output string) error {
	file, err := os.Open(output)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // only read from
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		number, rest, _ := strings.Cut(scanner.Text(), " ")
		deliveries, body, _ := strings.Cut(rest, " ")
		line, err := strconv.Atoi(number)
		if err != nil || line < 1 || line > len(lines) {
			return fmt.Errorf("line %q is not of the file", number)
		}
		text, err := hex.DecodeString(body)
		if err != nil || !bytes.Equal(text, lines[line-1]) {
			return fmt.Errorf("line %d was changed on its way", line)
		}
		r.times[line-1]++
		r.consumer[consumer]++
		r.byVictim[line-1] = r.byVictim[line-1] || consumer == victim
		if deliveries != "1" {
			r.delivered++
		}
	}
	return scanner.Err()
}
