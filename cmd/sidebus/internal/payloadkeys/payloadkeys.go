// Package payloadkeys reads the keys that encrypt bodies and session states from a file, and again when it changes.
package payloadkeys

import (
	"encoding/base64"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/reread"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/yamlfile"
	"github.com/sidebus/sidebus/semantics/sealed"
)

// none as the name of the key that seals means that nothing is sealed any more.
const none = "none"

// Open reads keys from a file, and returns a function that returns those that the file has now. It returns nil for no
// file.
func Open(path string, logger *slog.Logger) (func() *sealed.Keys, error) {
	if path == "" {
		return nil, nil
	}
	told := "" // what the log has said; the file is read twice at first
	return reread.Open("the file of payload keys", logger, func(*sealed.Keys) (*sealed.Keys, []string, error) {
		keys, err := Read(path)
		if err != nil {
			return nil, []string{path}, err
		}
		mode := modeOf(path)
		if now := fmt.Sprint(keys.SealsWith(), mode); now != told {
			told = now
			announce(keys, path, mode, logger)
		}
		return keys, []string{path}, nil
	})
}

// modeOf returns who may do what with a file, 0 if that is not known.
func modeOf(path string) os.FileMode {
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS == "windows" {
		return 0
	}
	return info.Mode().Perm()
}

// announce logs what becomes of what is sent from now on. It warns about a file that every user of the machine can
// read. Kubernetes mounts secrets so, in a container of their own, so it is not refused.
func announce(keys *sealed.Keys, path string, mode os.FileMode, logger *slog.Logger) {
	if name := keys.SealsWith(); name != "" {
		logger.Info("bodies and session states are encrypted in Redis", "key", name)
	} else {
		logger.Warn("bodies and session states are not encrypted in Redis any more", "sealWith", none)
	}
	const others = 0o004
	if mode&others != 0 {
		logger.Warn(
			"every user of this machine can read the payload keys; permit only the user of Sidebus to read the file", "file",
			path, "mode", fmt.Sprintf("%#o", mode),
		)
	}
}

// Read reads keys from YAML. An error names the place and never a key.
func Read(path string) (*sealed.Keys, error) {
	top, err := yamlfile.Read("--payload-keys-file", path)
	if err != nil {
		return nil, err
	}
	if top.IsNull() {
		return nil, fmt.Errorf("--payload-keys-file: %s has no keys; add sealWith and keys", path)
	}
	fields, err := top.Mapping("sealWith, keys and lost", yamlfile.OneOf("sealWith", "keys", "lost"))
	if err != nil {
		return nil, err
	}
	var sealWith yamlfile.Node
	var all []*sealed.Key
	var lost []string
	for _, field := range fields {
		switch field.Key {
		case "sealWith":
			sealWith = field
		case "keys":
			all, err = readKeys(field)
		default:
			lost, err = readLost(field)
		}
		if err != nil {
			return nil, err
		}
	}
	if sealWith.Key == "" {
		return nil, top.Errorf("must have sealWith, the name of the key that encrypts, or %s to decrypt only", none)
	}
	name, err := sealWith.Plain()
	if err != nil {
		return nil, err
	}
	switch has := slices.ContainsFunc(all, func(k *sealed.Key) bool { return k.Name() == name }); {
	case name == none:
		name = ""
	case !has:
		return nil, sealWith.Errorf("is %q, which is not one of the keys; add that key, or name one of them", name)
	}
	keys, err := sealed.NewKeys(name, all...)
	if err != nil {
		return nil, err
	}
	return keys.Losing(lost...), nil
}

// readLost reads names of keys.
func readLost(node yamlfile.Node) ([]string, error) {
	rows, err := node.List("names of keys")
	if err != nil {
		return nil, err
	}
	names := make([]string, len(rows))
	for i, row := range rows {
		if names[i], err = row.Plain(); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// readKeys reads a mapping of names to secrets in base64.
func readKeys(node yamlfile.Node) ([]*sealed.Key, error) {
	fields, err := node.Mapping("keys by their names", func(string) (bool, string) { return true, "" })
	if err != nil {
		return nil, err
	}
	var all []*sealed.Key
	for _, field := range fields {
		text, err := field.Plain()
		if err != nil {
			return nil, err
		}
		secret, err := base64.StdEncoding.DecodeString(text)
		if err != nil { // which repeats a part of the key
			return nil, field.Errorf("is not base64; create a key with: openssl rand -base64 %d", sealed.KeySize)
		}
		if field.Key == none {
			return nil, field.Errorf("cannot be the name of a key, since sealWith has another meaning for it")
		}
		key, err := sealed.NewKey(field.Key, secret)
		if err != nil {
			return nil, field.Errorf("%s", err.Error())
		}
		all = append(all, key)
	}
	return all, nil
}
