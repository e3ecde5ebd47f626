// Package saskeys reads the rules of shared access from a file, and again when it changes.
package saskeys

import (
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/yamlfile"
	"github.com/sidebus/sidebus/proxy/access"
)

// lookPause is how often the file with the keys is looked at, so that a key that was replaced soon voids its tokens.
const lookPause = 2 * time.Second

// keysFile has the rules of shared access in a file, which may change.
type keysFile struct {
	path   string
	logger *slog.Logger

	mu     sync.Mutex
	keys   access.Keys
	looked time.Time
	seen   os.FileInfo // of the file when it was read
}

// Authorizer makes an Authorizer of what Open returns. Without rules everybody may do everything.
func Authorizer(keys func() access.Keys) access.Authorizer {
	if keys == nil {
		return access.AllowAll{}
	}
	return access.SAS(keys)
}

// Open reads the rules of shared access from a file. It returns nil for no file.
func Open(path string, logger *slog.Logger) (func() access.Keys, error) {
	if path == "" {
		return nil, nil
	}
	s := &keysFile{path: path, logger: logger, looked: time.Now()}
	var err error
	if s.seen, err = os.Stat(path); err != nil {
		return nil, fmt.Errorf("--sas-keys-file: %w", err)
	}
	if s.keys, err = read(path); err != nil {
		return nil, err
	}
	return s.current, nil
}

// current returns the rules as the file has them. One that cannot be read any more leaves those of before.
func (s *keysFile) current() access.Keys {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.looked) < lookPause {
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
		keys, err = read(s.path)
	}
	if err != nil {
		s.logger.Warn("the file of shared access keys cannot be read; the previous keys remain valid", "error", err)
		return s.keys
	}
	s.keys = keys
	s.logger.Info("the shared access keys were read again", "rules", len(keys))
	return s.keys
}

var claimsByName = map[string]access.Claims{"Send": access.Send, "Listen": access.Listen, "Manage": access.Manage}

// read reads rules from YAML: a mapping of their names. An error names the place and no key.
func read(path string) (access.Keys, error) {
	top, err := yamlfile.Read("--sas-keys-file", path)
	if err != nil {
		return nil, err
	}
	if top.IsNull() {
		return nil, fmt.Errorf("--sas-keys-file: %s has no rules, so no client could do anything; add a rule", path)
	}
	rules, err := top.Mapping("rules by their names", func(string) (bool, string) { return true, "" })
	if err != nil {
		return nil, err
	}
	keys := access.Keys{}
	for _, rule := range rules {
		key, err := readKey(rule)
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

func readKey(rule yamlfile.Node) (access.Key, error) {
	var key access.Key
	fields, err := rule.Mapping(
		"primaryKey, claims and so on", yamlfile.OneOf("primaryKey", "secondaryKey", "claims", "entity"),
	)
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
			if claimsByName[text] == 0 {
				return key, claim.Errorf("is %q, must be Send, Listen or Manage", text)
			}
			key.Claims |= claimsByName[text]
		}
	}
	return key, nil
}
