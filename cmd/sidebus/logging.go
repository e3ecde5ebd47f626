package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
)

// newLogger makes the one logger of the process.
func newLogger(level, format string, to io.Writer) (*slog.Logger, error) {
	var least slog.Level
	switch strings.ToLower(level) {
	case "debug", "info", "warn", "error":
		if err := least.UnmarshalText([]byte(level)); err != nil {
			return nil, fmt.Errorf("--log-level: %w", err)
		}
	default:
		return nil, bad("log-level", "is %q, must be debug, info, warn or error", level)
	}
	options := &slog.HandlerOptions{Level: least}
	switch format {
	case "json":
		return slog.New(slog.NewJSONHandler(to, options)), nil
	case "text":
		return slog.New(slog.NewTextHandler(to, options)), nil
	case "auto":
		if isTerminal(to) {
			return slog.New(slog.NewTextHandler(to, options)), nil
		}
		return slog.New(slog.NewJSONHandler(to, options)), nil
	default:
		return nil, bad("log-format", "is %q, must be json, text or auto", format)
	}
}

// isTerminal reports whether a stream is a terminal. The null device is a character device too and is none.
func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}
