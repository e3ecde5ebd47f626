// Package sealed encrypts what a store keeps of bodies and session states, and decrypts it (CRYPT-1).
//
// A sealed text has the name of its key, so that keys can be changed while messages are stored. It is encrypted with
// XAES-256-GCM (https://c2sp.org/XAES-256-GCM): AES-256-GCM with a key of its own for each text, derived from the key
// and a random nonce of 24 bytes. Random nonces of that length do not repeat, however many messages one key seals.
package sealed
