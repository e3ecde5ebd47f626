package sealed

// SealWith encrypts with a nonce that the test chooses, and returns what was encrypted without what stands before it.
func SealWith(k *Keys, nonce, text, context []byte) ([]byte, error) {
	aead, err := k.seals.root.derive(nonce)
	if err != nil {
		return nil, err
	}
	return aead.Seal(nil, nonce[derivedFrom:], text, context), nil
}
