package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/sidebus/sidebus/test/figures"
)

// rabbitNode is a server of one workload.
type rabbitNode struct {
	url  string
	cpu  func() time.Duration
	stop func()
}

// rabbitPrograms are where packages put the server's own script. The one that Debian puts on PATH runs as the user
// rabbitmq only, with the files of the system.
var rabbitPrograms = []string{"/usr/lib/rabbitmq/bin/rabbitmq-server", "rabbitmq-server"}

// installed returns the server of this system.
func installed() (string, error) {
	for _, name := range rabbitPrograms {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("rabbitmq-server is not installed; run test/install.sh rabbitmq, or leave it out with -only")
}

// inRoot runs a program in the folder of another system, which shares only processes and devices with this one.
const inRoot = `root="$1"; shift; mount --bind /proc "$root/proc"; mount --bind /dev "$root/dev"; exec chroot "$root" "$@"`

// rabbitPlace is where a node runs: in this system, or with a root in the folder of another one, such as debootstrap
// makes it, for another version.
type rabbitPlace struct{ root, program, dir string }

func placeRabbit(root, dir string) (rabbitPlace, error) {
	if root == "" {
		program, err := installed()
		return rabbitPlace{program: program, dir: dir}, err
	}
	inside, err := os.MkdirTemp(filepath.Join(root, "var/tmp"), "bench-")
	if err != nil {
		return rabbitPlace{}, err
	}
	return rabbitPlace{root, rabbitPrograms[0], strings.TrimPrefix(inside, strings.TrimSuffix(root, "/"))}, nil
}

// command returns a program with an environment.
func (p rabbitPlace) command(ctx context.Context, env []string, program string) *exec.Cmd {
	c := exec.CommandContext(ctx, program)
	if p.root != "" {
		c = exec.CommandContext(ctx, "unshare", "--mount", "sh", "-ec", inRoot, "sh", p.root, program)
	}
	c.Env = env
	return c
}

// pid returns that of the server, which it writes to a file; 0 when there is none yet.
func (p rabbitPlace) pid() int {
	text, _ := os.ReadFile(filepath.Join(p.root, p.dir, "pid"))
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return pid
}

// startRabbit runs a node with its files in dir, or in a root, and a port mapper (epmd) of its own, so that it meets no
// other one.
func startRabbit(ctx context.Context, root, dir string) (*rabbitNode, error) {
	place, err := placeRabbit(root, dir)
	if err != nil {
		return nil, err
	}
	port, mapper, distribution := freePort(), freePort(), freePort()
	env := append(
		os.Environ(), "HOME="+place.dir, "ERL_EPMD_ADDRESS=127.0.0.1", "ERL_EPMD_PORT="+mapper,
		"RABBITMQ_NODENAME=bench-"+port+"@localhost", "RABBITMQ_NODE_IP_ADDRESS=127.0.0.1", "RABBITMQ_NODE_PORT="+port,
		"RABBITMQ_DIST_PORT="+distribution, "RABBITMQ_MNESIA_BASE="+place.dir, "RABBITMQ_LOG_BASE="+place.dir,
		"RABBITMQ_CONFIG_FILE="+place.dir+"/none", "RABBITMQ_CONF_ENV_FILE="+place.dir+"/none",
		"RABBITMQ_ENABLED_PLUGINS_FILE="+place.dir+"/none", "RABBITMQ_PID_FILE="+place.dir+"/pid",
	)
	epmd, command := place.command(ctx, env, "epmd"), place.command(ctx, env, place.program)
	if err := errors.Join(epmd.Start(), command.Start()); err != nil {
		return nil, err
	}
	stop := func() {
		beam, err := os.FindProcess(place.pid())
		if place.pid() == 0 || err != nil {
			beam = command.Process
		}
		_ = beam.Kill()
		_ = command.Wait() // the script ends with what it runs
		_ = epmd.Process.Kill()
		_ = epmd.Wait()
		if place.root != "" {
			_ = os.RemoveAll(filepath.Join(place.root, place.dir))
		}
	}
	url := "amqp://guest:guest@127.0.0.1:" + port
	err = until(ctx, func() bool {
		conn, err := amqp.Dial(url)
		return err == nil && conn.Close() == nil && place.pid() > 0
	})
	if err != nil {
		stop()
		return nil, fmt.Errorf("%s does not answer: %w", place.program, err)
	}
	return &rabbitNode{url: url, cpu: figures.CPUOf(place.pid()), stop: stop}, nil
}
