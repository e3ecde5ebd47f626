package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/sidebus/sidebus/test/figures"
)

// driver is a client in another process, because it is in another language or needs other modules. Its first line of
// output is a hello. After that it answers each line of input, which says what to do, with a line that has its values.
type driver struct {
	hello   hello
	pid     int
	input   io.Writer
	answers *bufio.Reader
	stop    func()
}

type hello struct {
	Versions  map[string]string `json:"versions"`
	Processes map[string]int    `json:"processes"` // that work for it, by what they do
}

// startDriver runs a driver in a folder, empty for that of this process, and waits for the hello. The driver ends with
// its input.
func startDriver(ctx context.Context, folder, program string, args ...string) (*driver, error) {
	command := exec.CommandContext(ctx, program, args...)
	command.Dir, command.Stderr = folder, os.Stderr
	input, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	d := &driver{pid: command.Process.Pid, input: input, answers: bufio.NewReader(output), stop: func() {
		_ = input.Close()
		_ = command.Wait()
	}}
	if err := d.read(&d.hello); err != nil {
		d.stop()
		return nil, err
	}
	return d, nil
}

// do lets the driver do one thing and returns its values.
func (d *driver) do(what string) (values map[string]float64, err error) {
	if _, err := fmt.Fprintln(d.input, what); err != nil {
		return nil, err
	}
	return values, d.read(&values)
}

func (d *driver) read(answer any) error {
	line, err := d.answers.ReadBytes('\n')
	if errors.Is(err, io.EOF) {
		return errors.New("the client in another process has ended")
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(line, answer)
}

// processes returns those of the driver, which is the client.
func (d *driver) processes() processes {
	p := processes{"client": figures.CPUOf(d.pid)}
	for what, pid := range d.hello.Processes {
		p[what] = figures.CPUOf(pid)
	}
	return p
}
