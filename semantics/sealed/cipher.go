package sealed

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/subtle"
)

// nonceSize is the length of the nonce of a text: the first half derives the key, the second is the nonce of GCM.
const (
	nonceSize   = 24
	derivedFrom = 12
)

// root derives the keys of texts: XAES-256-GCM, which is the key derivation of NIST SP 800-108r1 with CMAC.
type root struct {
	block cipher.Block
	mask  [aes.BlockSize]byte // the subkey K1 of CMAC
}

func newRoot(secret []byte) (root, error) {
	block, err := aes.NewCipher(secret)
	if err != nil {
		return root{}, err
	}
	r := root{block: block}
	block.Encrypt(r.mask[:], r.mask[:])
	carry := byte(0)
	for i := len(r.mask) - 1; i >= 0; i-- {
		r.mask[i], carry = r.mask[i]<<1|carry, r.mask[i]>>7
	}
	r.mask[len(r.mask)-1] ^= carry * 0x87
	return r, nil
}

// derive returns the cipher for a nonce of nonceSize.
func (r *root) derive(nonce []byte) (cipher.AEAD, error) {
	var key [2 * aes.BlockSize]byte
	for half := range 2 {
		part := key[half*aes.BlockSize : (half+1)*aes.BlockSize]
		copy(part, []byte{0, byte(half + 1), 'X', 0})
		copy(part[aes.BlockSize-derivedFrom:], nonce[:derivedFrom])
		subtle.XORBytes(part, part, r.mask[:])
		r.block.Encrypt(part, part)
	}
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}
