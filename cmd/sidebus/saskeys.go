package main

import (
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/yamlfile"
	"github.com/sidebus/sidebus/proxy/compat"
)

// sasLook is how often the file with the keys is looked at, so that a key that was replaced soon voids its tokens.
const sasLook = 2 * time.Second

// sasKeys are the rules of shared access in a file, which may change.
type sasKeys struct {
	path   string
	logger *slog.Logger

	mu     sync.Mutex
	keys   compat.Keys
	looked time.Time
	seen   os.FileInfo // of the file when it was read
}

// openSASKeys reads the rules of shared access from a file. It gives nil for no file.
func openSASKeys(path string, logger *slog.Logger) (func() compat.Keys, error) {
	if path == "" {
		return nil, nil
	}
	s := &sasKeys{path: path, logger: logger, looked: time.Now()}
	var err error
	if s.seen, err = os.Stat(path); err != nil {
		return nil, fmt.Errorf("--sas-keys-file: %w", err)
	}
	if s.keys, err = readSASKeys(path); err != nil {
		return nil, err
	}
	return s.current, nil
}

// current gives the rules as the file has them. One that cannot be read any more leaves those of before.
func (s *sasKeys) current() compat.Keys {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.looked) < sasLook {
		return s.keys
	}
	s.looked = time.Now()
	now, err := os.Stat(s.path)
	if err == nil && now.ModTime().Equal(s.seen.ModTime()) && now.Size() == s.seen.Size() && os.SameFile(now, s.seen) {
		return s.keys
	}
	keys := s.keys
	if err == nil {
		s.seen = now
		keys, err = readSASKeys(s.path)
	}
	if err != nil {
		s.logger.Warn("the file with the keys of shared access cannot be read; those of before still hold", "error", err)
		return s.keys
	}
	s.keys = keys
	s.logger.Info("the keys of shared access were read again", "rules", len(keys))
	return s.keys
}

var sasClaims = map[string]compat.Claims{"Send": compat.Send, "Listen": compat.Listen, "Manage": compat.Manage}

// readSASKeys reads rules from YAML: a mapping of their names. An error names the place and no key.
func readSASKeys(path string) (compat.Keys, error) {
	top, err := yamlfile.Read("--sas-keys-file", path)
	if err != nil {
		return nil, err
	}
	if top.IsNull() {
		return nil, fmt.Errorf("--sas-keys-file: %s has no rules, so that nobody could do anything", path)
	}
	rules, err := top.Mapping("rules by their names", func(string) (bool, string) { return true, "" })
	if err != nil {
		return nil, err
	}
	keys := compat.Keys{}
	for _, rule := range rules {
		key, err := readSASKey(rule)
		if err != nil {
			return nil, err
		}
		if err := key.Check(rule.Key); err != nil {
			return nil, rule.Errorf("%s", err.Error())
		}
		keys[rule.Key] = key
	}
	return keys, nil
}

func readSASKey(rule yamlfile.Node) (compat.Key, error) {
	var key compat.Key
	fields, err := rule.Mapping("primaryKey, claims and so on", yamlfile.OneOf("primaryKey", "secondaryKey", "claims", "entity"))
	if err != nil {
		return key, err
	}
	texts := map[string]*string{"primaryKey": &key.Primary, "secondaryKey": &key.Secondary, "entity": &key.Entity}
	for _, field := range fields {
		if to := texts[field.Key]; to != nil {
			if *to, err = field.Plain(); err != nil {
				return key, err
			}
			continue
		}
		claims, err := field.List("claims")
		if err != nil {
			return key, err
		}
		for _, claim := range claims {
			text, err := claim.Plain()
			if err != nil {
				return key, err
			}
			if sasClaims[text] == 0 {
				return key, claim.Errorf("is %q, must be Send, Listen or Manage", text)
			}
			key.Claims |= sasClaims[text]
		}
	}
	return key, nil
}
