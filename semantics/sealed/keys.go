package sealed

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"

	"github.com/sidebus/sidebus/semantics"
)

// KeySize is the length of a secret.
const KeySize = 32

// MaxNameLength is the most characters of the name of a key.
const MaxNameLength = 64

var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// checkSize is the length of what distinguishes two keys of one name.
const checkSize = 4

// Key is a secret with its name. It is immutable.
type Key struct {
	name  string
	check [checkSize]byte
	root  root
}

// NewKey returns a key. The error names what is wrong and never repeats the secret.
func NewKey(name string, secret []byte) (*Key, error) {
	if len(name) > MaxNameLength || !validName.MatchString(name) {
		return nil, fmt.Errorf(
			"must have a name of 1 to %d letters, digits, '.', '_' and '-' that begins with a letter or digit", MaxNameLength,
		)
	}
	if len(secret) != KeySize {
		return nil, fmt.Errorf("has %d bytes, must have %d", len(secret), KeySize)
	}
	root, err := newRoot(secret)
	if err != nil {
		return nil, err
	}
	k := &Key{name: name, root: root}
	sum := sha256.Sum256(append([]byte("sidebus payload key\x00"), secret...))
	copy(k.check[:], sum[:])
	return k, nil
}

// Name returns the name of the key.
func (k *Key) Name() string { return k.name }

// Keys are the keys that a sidecar has. It is immutable; a nil *Keys has none, and opens nothing.
type Keys struct {
	seals *Key // nil: nothing is sealed any more
	all   map[string]*Key
	lost  map[string]bool // names, see Losing
}

// NewKeys returns keys of different names, of which the one with the name seals seals; with "" nothing is sealed, and
// what was sealed before can still be opened.
func NewKeys(seals string, all ...*Key) (*Keys, error) {
	keys := &Keys{all: make(map[string]*Key, len(all))}
	for _, k := range all {
		if keys.all[k.name] != nil {
			return nil, fmt.Errorf("two keys are named %q", k.name)
		}
		keys.all[k.name] = k
	}
	if keys.seals = keys.all[seals]; keys.seals == nil && seals != "" {
		return nil, fmt.Errorf("no key is named %q", seals)
	}
	return keys, nil
}

// Losing returns keys that do not expect those of the given names any more: what needs one that is missing is damaged
// instead of waiting for it.
func (k *Keys) Losing(names ...string) *Keys {
	with := *k
	with.lost = make(map[string]bool, len(names))
	for _, name := range names {
		with.lost[name] = true
	}
	return &with
}

// Seals reports whether texts are to be sealed.
func (k *Keys) Seals() bool { return k != nil && k.seals != nil }

// SealsWith returns the name of the key that seals, "" if nothing is to be sealed.
func (k *Keys) SealsWith() string {
	if !k.Seals() {
		return ""
	}
	return k.seals.name
}

// Overhead is how much longer a text is when it is sealed.
func (k *Keys) Overhead() int { return headSize(len(k.seals.name)) + tagSize }

// headSize is the length of what stands before an encrypted text, with a name of so many bytes.
func headSize(name int) int { return 1 + name + checkSize + nonceSize }

// tagSize is the length of the tag by which GCM recognizes what was changed.
const tagSize = 16

// Seal appends a text to b, sealed. It can be opened only together with the same context, which is not encrypted. Call
// it only if k.Seals.
func (k *Keys) Seal(b, text, context []byte) []byte {
	name := k.seals.name
	b = append(b, byte(len(name)))
	b = append(append(b, name...), k.seals.check[:]...)
	var nonce [nonceSize]byte
	_, _ = rand.Read(nonce[:]) // it never fails
	b = append(b, nonce[:]...)
	aead, err := k.seals.root.derive(nonce[:])
	if err != nil {
		panic(err) // the lengths of keys and nonces are constants
	}
	return aead.Seal(b, nonce[derivedFrom:], text, withName(context, name))
}

// withName returns what is authenticated: a name that was changed would else go unnoticed, since a key is found by its
// digest too.
func withName(context []byte, name string) []byte {
	all := make([]byte, 0, len(context)+1+len(name))
	return append(append(append(all, context...), byte(len(name))), name...)
}

// Why a sealed text cannot be opened, whatever keys there will be.
var (
	// ErrChanged says that a sealed text, or its context, is not what was sealed.
	ErrChanged = errors.New("it was changed after it was sealed, or is damaged")
	// ErrLost says that the key is one that does not come back.
	ErrLost = errors.New("this key is lost, as the file of --payload-keys-file says")
)

// Open appends to b the text that was sealed. PAYLOAD_KEY_MISSING without its key; ErrChanged, ErrLost.
func (k *Keys) Open(b, sealed, context []byte) ([]byte, error) {
	name, check, rest, err := parse(sealed)
	if err != nil {
		return nil, err
	}
	key, err := k.find(name, check)
	if err != nil {
		return nil, err
	}
	nonce, text := rest[:nonceSize], rest[nonceSize:]
	aead, err := key.root.derive(nonce)
	if err != nil {
		return nil, err
	}
	if b, err = aead.Open(b, nonce[derivedFrom:], text, withName(context, name)); err != nil {
		return nil, fmt.Errorf("sealed with the key %q: %w", name, ErrChanged)
	}
	return b, nil
}

// find returns the key of a name, or the same key under another name: two that were given the same name by mistake must
// both have a place in the file.
func (k *Keys) find(name string, check [checkSize]byte) (*Key, error) {
	if k == nil {
		return nil, semantics.NoPayloadKey(name, "this sidecar has no payload keys; add that key to a file for --payload-keys-file")
	}
	if key := k.all[name]; key != nil && key.check == check {
		return key, nil
	}
	for _, key := range k.all {
		if key.check == check {
			return key, nil
		}
	}
	switch {
	case k.lost[name]:
		return nil, fmt.Errorf("sealed with the key %q: %w", name, ErrLost)
	case k.all[name] != nil:
		return nil, semantics.NoPayloadKey(
			name, "the key that has this name here is another one; add the right one to the file of --payload-keys-file, under any other name",
		)
	default:
		return nil, semantics.NoPayloadKey(name, "this sidecar does not have it; add that key to the file of --payload-keys-file")
	}
}

// Lacks reports whether the key of a sealed text is missing.
func (k *Keys) Lacks(sealed []byte) bool {
	name, check, _, err := parse(sealed)
	if err != nil {
		return false
	}
	_, err = k.find(name, check)
	return semantics.CodeOf(err) == semantics.PayloadKeyMissing
}

// NameOf returns the name of the key that a sealed text needs, and the length of the text that it has. ErrChanged.
func NameOf(sealed []byte) (name string, length int, err error) {
	name, _, rest, err := parse(sealed)
	return name, len(rest) - nonceSize - tagSize, err
}

func parse(sealed []byte) (name string, check [checkSize]byte, rest []byte, err error) {
	if len(sealed) == 0 || len(sealed) < headSize(int(sealed[0]))+tagSize {
		return "", check, nil, ErrChanged
	}
	end := 1 + int(sealed[0])
	if name = string(sealed[1:end]); !validName.MatchString(name) { // so that an error can show it
		return "", check, nil, ErrChanged
	}
	copy(check[:], sealed[end:])
	return name, check, sealed[end+checkSize:], nil
}
